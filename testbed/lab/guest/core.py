"""One run per core: the guest kernel and its processes hand over at every system call.

On two CPUs each hand-over wakes an idle core and costs up to eight times the wall
time, so every guest is pinned; parallel runs take different cores.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def reserved_core(locks: Path) -> Iterator[int]:
    """A core that no other guest of this user holds, or the last allowed one if all are taken.

    The reservation is a file lock, so it ends with the process whatever happens.
    """
    locks.mkdir(parents=True, exist_ok=True)
    allowed = sorted(os.sched_getaffinity(0), reverse=True)
    for core in allowed:
        descriptor = os.open(locks / f"core-{core}.lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        try:
            yield core
        finally:
            os.close(descriptor)
        return
    yield allowed[0]
