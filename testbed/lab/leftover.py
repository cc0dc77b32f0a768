"""Reads ledgers of the host and undoes what their dead owners left.

Nothing is searched for: what no ledger names is not ours. An entry is undone only when the
process that wrote it is gone (process id, start and boot) and holds its file no longer.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import LabError
from testbed.lab.compose.dockerd import end_left_dockerd
from testbed.lab.guest.kernel.cache import build_lock_if_free
from testbed.lab.hostledger import FOLDER, Kind, Owner


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that a task had open."""

    kind: Kind
    path: Path


@dataclass(frozen=True, slots=True)
class Account:
    """What one ledger says: its file, its owner (None: none was written), what is open."""

    file: Path
    owner: Owner | None
    entries: tuple[Entry, ...]


def read_account(file: Path) -> Account:
    """Reads one ledger; a torn last line counts for nothing, as what it names was not made.

    Raises:
        LabError: a line is none of ours, so nothing in the file can be relied on.
    """
    lines = file.read_text(encoding="utf-8").split("\n")[:-1]
    if not lines:
        return Account(file, None, ())
    entries: list[Entry] = []
    try:
        owner = Owner(**json.loads(lines[0]))
        for line in lines[1:]:
            content = json.loads(line)
            entry = Entry(Kind(content["kind"]), Path(content["name"]))
            if content["action"] == "acquire":
                entries.append(entry)
            elif entry in entries:
                entries.remove(entry)
    except (ValueError, KeyError, TypeError) as error:
        raise LabError(
            "read a ledger", str(file), f"{type(error).__name__}: {error}",
            "look at what it names, undo that by hand, then remove the file",
        ) from error  # fmt: skip
    return Account(file, owner, tuple(entries))


def ledgers(cache: Path) -> tuple[Path, ...]:
    """Files of all ledgers below ``cache``, in a stable order."""
    return tuple(sorted((cache / FOLDER).glob("*.jsonl")))


@contextmanager
def abandoned(file: Path) -> Iterator[bool]:
    """Yields whether the owner is gone; while the block runs nobody else tidies up there."""
    try:
        with file.open("r+", encoding="utf-8") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            if os.fstat(stream.fileno()).st_nlink == 0:
                yield False
                return
            owner = read_account(file).owner
            yield owner is not None and not owner.lives
    except FileNotFoundError:
        yield False


def remove(entry: Entry) -> str:
    """Undoes an entry other than a run folder; says in words what was done.

    Raises:
        OSError: it cannot be removed.
    """
    if not os.path.lexists(entry.path):
        return "already gone"
    if entry.kind is Kind.ENGINE:
        return end_left_dockerd(entry.path)
    if entry.kind is Kind.LOCK:
        return _remove_lock(entry.path)
    if entry.kind is Kind.BUILD:
        with build_lock_if_free() as free:
            return _remove_folder(entry.path) if free else "left alone, a build is going on"
    return _remove_folder(entry.path)


def _remove_folder(path: Path) -> str:
    if path.is_symlink() or not path.is_dir() or path.lstat().st_uid != os.geteuid():
        return "left alone, it is no folder of this user"
    shutil.rmtree(path)
    return "removed"


def _remove_lock(path: Path) -> str:
    with path.open("r+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return "left alone, another process holds it"
        path.unlink()
    return "removed"
