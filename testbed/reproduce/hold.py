"""A study's folder belongs to one command at a time.

The kernel's lock on the folder itself ends with the process that holds it, however that
ends: nothing is left that a later command would have to undo.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from testbed.errors import UsageError


@contextlib.contextmanager
def held(out: Path) -> Iterator[None]:
    """Makes the folder where it is missing, and keeps other studies out of it.

    Raises:
        UsageError: it is no folder, or another command works in it.
        OSError: it cannot be made.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(
            "run the study", str(out), "it is a file, or below one", "name a folder with --out"
        ) from error
    descriptor = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                "run the study", str(out), "another command works in this folder",
                "wait for it, or choose another folder with --out",
            ) from error  # fmt: skip
        yield
    finally:
        os.close(descriptor)
