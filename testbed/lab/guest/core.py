"""One run per core: the guest kernel and its processes hand over at every system call.

On two CPUs each hand-over wakes an idle core and costs up to eight times the wall
time, so every guest is pinned; parallel runs take different cores.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from testbed.lab.hostledger import HostLedger, Kind

_SEATS = 16
"""Guests on one core at most that are counted."""


@contextlib.contextmanager
def reserved_core(locks: Path, ledger: HostLedger) -> Iterator[int]:
    """A core with as few guests of this user as any, the last allowed one first.

    The reservation is a file lock, so it ends with the process whatever happens; the file
    goes with it while the lock is held.
    """
    locks.mkdir(parents=True, exist_ok=True)
    allowed = sorted(os.sched_getaffinity(0), reverse=True)
    for seat, core in itertools.product(range(_SEATS), allowed):
        path = locks / f"core-{core}-{seat}.lock"
        ledger.acquire(Kind.LOCK, path)
        descriptor = _locked(path)
        if descriptor is None:
            ledger.release(Kind.LOCK, path)
            continue
        try:
            yield core
        finally:
            path.unlink(missing_ok=True)
            os.close(descriptor)
            ledger.release(Kind.LOCK, path)
        return
    yield allowed[0]


def _locked(path: Path) -> int | None:
    """Descriptor of the locked file, or None where another process holds it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # its last holder removed it between opening and locking
