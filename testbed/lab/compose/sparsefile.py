"""Copies a sparse file: its holes stay holes, and blocks are shared where a file system can."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from testbed.errors import HostError


def allocated_bytes(path: Path) -> int:
    """What a file really takes on the disk; its holes take nothing (stat(2), st_blocks)."""
    return path.stat().st_blocks * 512


def copy_sparse(source: Path, target: Path) -> None:
    """Copies only what is allocated, inside the kernel (copy_file_range(2)).

    File systems with shared blocks (btrfs, xfs) make such a copy without moving a byte.

    Raises:
        HostError: the disk is full, or one of the files cannot be read or written.
    """
    try:
        with source.open("rb", buffering=0) as old, target.open("xb", buffering=0) as new:
            size = os.fstat(old.fileno()).st_size
            os.truncate(new.fileno(), size)
            begin = 0
            while (begin := _next_data(old.fileno(), begin)) < size:
                end = os.lseek(old.fileno(), begin, os.SEEK_HOLE)
                _copy_range(old.fileno(), new.fileno(), begin, end)
                begin = end
    except OSError as error:
        raise HostError(
            "copy a disk image", str(target), error.strerror or str(error),
            "free some space, or set XDG_CACHE_HOME to a folder on a larger disk",
        ) from error  # fmt: skip


def _next_data(descriptor: int, begin: int) -> int:
    """Where data begins at or after ``begin``; the end of the file where there is none left."""
    try:
        return os.lseek(descriptor, begin, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return os.fstat(descriptor).st_size
        raise


def _copy_range(old: int, new: int, begin: int, end: int) -> None:
    while begin < end:
        done = os.copy_file_range(old, new, end - begin, begin, begin)
        if done == 0:
            raise OSError(errno.EIO, "it became shorter while it was copied")
        begin += done
