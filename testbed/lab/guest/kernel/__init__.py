"""Builds the lab kernel once and remembers where it is.

::

    lab.config ─┐
    entropy.c ──┼─▶ key ─▶ <cache>/kernels/<key>/{linux, entropy.so, config, build.json}
    source ─────┘

Nothing here boots a guest; nothing is ever written into the source that was given.
"""

from testbed.lab.guest.kernel.build import build_kernel
from testbed.lab.guest.kernel.cache import cache_root, kernel_path
from testbed.lab.guest.kernel.progress import Progress

__all__ = ["Progress", "build_kernel", "cache_root", "kernel_path"]
