"""A second program in a container, for as long as the first one wants it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.lab.program import end_process

_END_S = 5.0


@contextmanager
def running_child(module: str, *arguments: str) -> Iterator[None]:
    """``python -m module`` runs while the block does; what it says comes out of the container."""
    process = subprocess.Popen([sys.executable, "-m", module, *arguments], stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        end_process(process, _END_S)
