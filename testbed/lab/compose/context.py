"""What goes into the images, as a value: the files of a build context and their digest.

The archive holds the files under the names of a checkout, as agents/Dockerfile copies them, all
with the same owner, mode and date: equal content is an equal archive.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import HostError
from testbed.lab.guest.snapshot import package_folders, source_files

DOCKERFILE = "agents/Dockerfile"
REQUIREMENTS = ("agents/requirements-router.txt", "agents/requirements-agent.txt")
WHEELS = "wheels"
"""Folder of packages in the context."""


@dataclass(frozen=True, slots=True)
class ContextFile:
    """One file: its name in the context and where it lies."""

    name: str
    path: Path


def checkout_file(name: str) -> Path:
    """A file of the checkout that only image builds need.

    Raises:
        HostError: testbed was installed without its checkout.
    """
    path = package_folders()["testbed"].parent / name
    if not path.is_file():
        raise HostError(
            "build images", str(path), "it is not there: images are built from a checkout",
            "call testbed from a checkout (make setup, then .venv/bin/testbed)",
        )  # fmt: skip
    return path


def recipe_files() -> tuple[ContextFile, ...]:
    """Dockerfile and pins."""
    return tuple(ContextFile(name, checkout_file(name)) for name in (DOCKERFILE, *REQUIREMENTS))


def code_files() -> tuple[ContextFile, ...]:
    """Our own code and data, the very files that the lab guest sees."""
    return tuple(ContextFile(_in_checkout(name), path) for name, path in source_files())


def _in_checkout(name: str) -> str:
    return f"agents/{name}" if name.startswith("testbed_agents/") else name


def digest_of(files: Iterable[ContextFile]) -> str:
    """SHA-256 over names and contents, in the order of the names."""
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.name):
        content = file.path.read_bytes()
        digest.update(f"{file.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def write_context(archive: Path, files: Iterable[ContextFile]) -> None:
    """Writes the archive."""
    with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as tar:
        for file in sorted(files, key=lambda file: file.name):
            entry = tarfile.TarInfo(file.name)
            entry.size = file.path.stat().st_size
            entry.mode = 0o644
            with file.path.open("rb") as stream:
                tar.addfile(entry, stream)
