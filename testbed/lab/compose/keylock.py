"""Locks for keys without a file for each: a key is one byte's place in a common lock file."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_FLOCK = struct.Struct("hhqqi0q")
"""struct flock of fcntl(2): type, whence, start, length, process."""


@contextmanager
def key_lock(file: Path, key: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Holds the lock of a key (hexadecimal); ``waiting`` is called where somebody has it.

    Raises:
        OSError: the lock file cannot be made.
    """
    with file.open("a") as stream:
        if not _locked(stream.fileno(), key, fcntl.F_OFD_SETLK):
            waiting()
            _locked(stream.fileno(), key, fcntl.F_OFD_SETLKW)
        yield


@contextmanager
def key_lock_if_free(file: Path, key: str) -> Iterator[bool]:
    """Yields whether nobody had the lock; nobody gets it while the block runs."""
    with file.open("a") as stream:
        yield _locked(stream.fileno(), key, fcntl.F_OFD_SETLK)


def _locked(descriptor: int, key: str, how: int) -> bool:
    place = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, int(key[:14], 16), 1, 0)
    try:
        fcntl.fcntl(descriptor, how, place)
    except BlockingIOError:
        return False
    return True
