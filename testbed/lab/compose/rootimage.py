"""Which base image a build starts from, and making one where no registry is at hand.

::

    <cache>/roots/<kind>.json          which root was made last
    <cache>/roots/<digest>.tar         the root itself, to be imported again into another Engine

A made base is named by the digest of its content, ``pdd-testbed/debian:<16 hex digits>``, as an
Engine's own image id contains the moment of the import.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import HostError
from testbed.lab.compose.engine import Engine
from testbed.lab.compose.roottar import files_below, write_root
from testbed.lab.compose.roottree import (
    PACKAGES,
    SUITE,
    can_debootstrap,
    files_of_this_machine,
    make_from_mirror,
)
from testbed.lab.hostledger import HostLedger

DEBIAN = "debian"
"""Value of --base: a root made from a package mirror."""
LOCAL = "local"
"""Value of --base: a root made of this machine's own packages."""
REPOSITORY = "pdd-testbed/debian"
_FOLDER = "roots"
_REVISION = 1


@dataclass(frozen=True, slots=True)
class RootImage:
    """A base image: its name, and what names its content (equal wherever the content is)."""

    name: str
    identity: str


def root_image(engine: Engine, wanted: str, cache: Path, say: Callable[[str], None]) -> RootImage:
    """The base image that was asked for, made or pulled first where it is not there.

    Args:
        wanted: ``debian``, ``local``, an image's name, or empty: ``debian`` where that can be
            made here, else ``local``.

    Raises:
        HostError: it is not to be had.
    """
    if not wanted:
        wanted = DEBIAN if can_debootstrap() else LOCAL
        say(f"base image: {wanted}")
    if wanted in (DEBIAN, LOCAL):
        return _made(engine, wanted, cache, say)
    found = engine.image(wanted)
    if found is None:
        say(f"pulling {wanted}")
        engine.pull(wanted)
        found = engine.image(wanted)
    if found is None:
        raise HostError("find the base image", wanted, "it is not there after pulling it")
    return RootImage(wanted, found.id)


def _made(engine: Engine, kind: str, cache: Path, say: Callable[[str], None]) -> RootImage:
    folder = cache / _FOLDER
    mirror = os.environ.get("DEBIAN_MIRROR", "") if kind == DEBIAN else ""
    about = json.dumps([_REVISION, kind, SUITE, PACKAGES, mirror])
    note = folder / f"{kind}-{hashlib.sha256(about.encode()).hexdigest()[:16]}.json"
    digest = _noted(note)
    if digest is None or not (folder / f"{digest}.tar").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            digest = _make(kind, mirror, folder, cache, say)
        except OSError as error:
            raise HostError(
                "make a base image", str(error.filename or folder), error.strerror or str(error),
                "free some space, or set XDG_CACHE_HOME to a folder on a larger disk",
            ) from error  # fmt: skip
        note.write_text(json.dumps({"sha256": digest}), "utf-8")
    image = RootImage(f"{REPOSITORY}:{digest[:16]}", digest)
    if engine.image(image.name) is None:
        say(f"importing {image.name}")
        engine.import_root(
            folder / f"{digest}.tar", REPOSITORY, digest[:16], f"pdd-testbed base ({kind})"
        )
    return image


def _noted(note: Path) -> str | None:
    try:
        read = json.loads(note.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return str(read["sha256"]) if isinstance(read, dict) and "sha256" in read else None


def _make(kind: str, mirror: str, folder: Path, cache: Path, say: Callable[[str], None]) -> str:
    """Makes the archive of a root; returns its digest, which names it."""
    with HostLedger(cache) as ledger, ledger.scratch(folder, "making-") as making:
        archive = making / "root.tar"
        if kind == DEBIAN:
            say("making a Debian root from the package mirror (one or two minutes)")
            with ledger.scratch(_without_spaces(folder), "testbed-root-") as root:
                make_from_mirror(root, mirror)
                digest = write_root(archive, files_below(root))
        else:
            say("making a Debian root from this machine's packages")
            digest = write_root(archive, files_of_this_machine())
        archive.rename(folder / f"{digest}.tar")
    return digest


def _without_spaces(folder: Path) -> Path:
    """The folder, or another one where debootstrap could not cope with the path."""
    return Path("/var/tmp") if any(c.isspace() for c in str(folder)) else folder
