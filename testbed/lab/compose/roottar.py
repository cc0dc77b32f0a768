"""A root file system as an archive whose bytes depend on nothing but its content.

Entries are sorted, dates are fixed, and what differs from one making to the next (logs, caches,
identities of a machine) is left out. So the digest of the archive names the root.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
from collections.abc import Mapping
from pathlib import Path

_DATE = 1_767_225_600
_EMPTY = (
    "dev",
    "proc",
    "sys",
    "run",
    "tmp",
    "var/tmp",
    "var/cache",
    "var/log",
    "var/lib/apt/lists",
)
"""Folders of which only the folder itself is taken."""
_DROPPED = (
    "etc/machine-id", "etc/hostname", "etc/resolv.conf", "etc/shadow", "etc/shadow-", "etc/gshadow",
    "etc/gshadow-", "etc/passwd-", "etc/group-", "debootstrap", "boot", "home", "root",
    "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "var/backups",
    "var/lib/dpkg/status-old", "var/lib/dpkg/info/format-old",
)  # fmt: skip
"""What an image has no use for, or must not have."""


def files_below(folder: Path) -> Mapping[str, Path]:
    """Path inside → path here of all that ``folder`` holds."""
    found: dict[str, Path] = {}
    for here, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(here) / name
            found[path.relative_to(folder).as_posix()] = path
    return found


def is_kept(name: str) -> bool:
    """Whether an entry belongs into an image."""
    if name.endswith(".pyc") or name.rpartition("/")[2] == "__pycache__":
        return False
    if any(name == dropped or name.startswith(f"{dropped}/") for dropped in _DROPPED):
        return False
    return not any(name.startswith(f"{folder}/") for folder in _EMPTY if name not in _EMPTY)


def write_root(archive: Path, files: Mapping[str, Path]) -> str:
    """Writes the archive; returns its SHA-256.

    Folders that no file names are added, and those that every root needs.

    Raises:
        OSError: a file cannot be read, or the disk is full.
    """
    kept = {name: path for name, path in files.items() if is_kept(name)}
    folders = {parent for name in kept for parent in _parents(name)} | set(_EMPTY)
    folders |= {parent for name in _EMPTY for parent in _parents(name)}
    with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as tar:
        for name in sorted({*kept, *folders}):
            _add(tar, name, kept.get(name))
    with archive.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _parents(name: str) -> tuple[str, ...]:
    parts = name.split("/")
    return tuple("/".join(parts[:n]) for n in range(1, len(parts)))


def _add(tar: tarfile.TarFile, name: str, path: Path | None) -> None:
    entry = tarfile.TarInfo(name)
    entry.mtime = _DATE
    entry.mode = 0o1777 if name in ("tmp", "var/tmp") else 0o755
    entry.type = tarfile.DIRTYPE
    facts = None if path is None else path.lstat()
    if path is None or facts is None or (name in _EMPTY and stat.S_ISDIR(facts.st_mode)):
        tar.addfile(entry)
        return
    entry.mode = stat.S_IMODE(facts.st_mode)
    entry.uid, entry.gid = facts.st_uid, facts.st_gid
    if stat.S_ISLNK(facts.st_mode):
        entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(path)
        tar.addfile(entry)
    elif stat.S_ISDIR(facts.st_mode):
        tar.addfile(entry)
    elif stat.S_ISREG(facts.st_mode):
        entry.type, entry.size = tarfile.REGTYPE, facts.st_size
        with path.open("rb") as stream:
            tar.addfile(entry, stream)
