"""A kernel source: a tree or a tarball, its version and its identity."""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import HostError, UsageError
from testbed.lab.guest.kernel.options import Version

OLDEST: Version = (6, 6)
"""First kernel whose netem takes a generator seed (TCA_NETEM_PRNG_SEED)."""

DEFAULT = Path("/usr/src/linux-source-6.12.tar.xz")
"""Where Debian's package linux-source-6.12 puts its tarball."""

_GENERATED = (".config", "include/config", "arch/x86/include/generated")


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A source that may be built: checked to be Linux, and new enough."""

    path: Path
    version: Version

    @property
    def is_tree(self) -> bool:
        """Whether it is an unpacked tree."""
        return self.path.is_dir()

    def identity(self) -> str:
        """SHA-256 over the content: of the tarball, or of every file of the tree."""
        return _tree_digest(self.path) if self.is_tree else _file_digest(self.path)


def open_source(path: Path | None) -> KernelSource:
    """Checks a source before anything is unpacked.

    Raises:
        HostError: no path was given and Debian's source package is not installed.
        UsageError: the path is no kernel source, is too old, or is a used tree.
    """
    chosen = DEFAULT if path is None else path
    if not chosen.exists():
        if path is None:
            raise HostError(
                "find a kernel source", str(DEFAULT), "it is not installed",
                "apt-get install linux-source-6.12, or give --source TREE_OR_TARBALL",
            )  # fmt: skip
        raise _refusal(chosen, "there is no such file or folder")
    makefile = _makefile_of_tree(chosen) if chosen.is_dir() else _makefile_of_tarball(chosen)
    version = parse_version(makefile)
    if version is None:
        raise _refusal(chosen, "its Makefile names no VERSION and PATCHLEVEL of Linux")
    if version < OLDEST:
        reason = "netem has no generator seed before 6.6, so no run could be repeated"
        raise _refusal(chosen, f"Linux {version[0]}.{version[1]} is too old: {reason}")
    if chosen.is_dir():
        for name in _GENERATED:
            if (chosen / name).exists():
                cause = f"the tree was built in before ({name} exists)"
                raise _refusal(chosen, cause, f"make -C {chosen} ARCH=um mrproper")
    return KernelSource(chosen.resolve(), version)


def parse_version(makefile: str) -> Version | None:
    """(VERSION, PATCHLEVEL) of a kernel's top Makefile, or None."""
    major = re.search(r"^VERSION = (\d+)$", makefile, re.MULTILINE)
    minor = re.search(r"^PATCHLEVEL = (\d+)$", makefile, re.MULTILINE)
    return (int(major[1]), int(minor[1])) if major and minor else None


def _refusal(path: Path, cause: str, remedy: str = "") -> UsageError:
    advice = remedy or "give a kernel source tree or tarball, version 6.6 or later"
    return UsageError("use kernel source", str(path), cause, advice)


def _makefile_of_tree(tree: Path) -> str:
    makefile = tree / "Makefile"
    if not makefile.is_file() or not (tree / "arch" / "um").is_dir():
        raise _refusal(tree, "it holds no Makefile with an arch/um beside it")
    return makefile.read_text("utf-8", errors="replace")


def _makefile_of_tarball(tarball: Path) -> str:
    """Reads only as far as the top Makefile (a few seconds of decompression)."""
    try:
        with tarfile.open(tarball, mode="r|*") as archive:
            for member in archive:
                parts = Path(member.name).parts
                if len(parts) == 2 and parts[1] == "Makefile" and member.isfile():
                    stream = archive.extractfile(member)
                    return "" if stream is None else stream.read(65_536).decode(errors="replace")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise _refusal(tarball, f"it is not a whole tarball: {error}") from error
    raise _refusal(tarball, "it holds no top-level Makefile")


def _file_digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _tree_digest(tree: Path) -> str:
    """Digest of names and contents in a fixed order; version control is left out."""
    total = hashlib.sha256()
    for folder, folders, files in os.walk(tree):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(files):
            path = Path(folder) / name
            content = os.readlink(path) if path.is_symlink() else _file_digest(path)
            total.update(f"{path.relative_to(tree)}\0{content}\n".encode())
    return total.hexdigest()
