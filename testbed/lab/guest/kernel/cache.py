"""Where built kernels lie, under which key, and which one runs use.

A key covers everything that shapes the binary: options, entropy.c, recipe, source.
``selected-<recipe>`` is a symbolic link to the kernel that was built or asked for last;
another version of the product, with other options, has a link of its own.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from testbed.lab.guest.kernel.options import fragment, lab_options
from testbed.lab.guest.kernel.progress import Progress

RECIPE = 2
"""Rises when the build steps change in a way that changes the binary."""

FILES = ("linux", "entropy.so", "config", "build.json")


def cache_root() -> Path:
    """This user's cache folder of the product (not made here)."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return root / "pdd-testbed"


def kernels_folder() -> Path:
    """The folder that holds all built kernels of this user."""
    return cache_root() / "kernels"


def recipe_digest() -> str:
    """Identity of what the product itself adds: options, entropy.c and build steps.

    Comments of lab.config do not count; a reworded reason needs no new kernel.
    """
    digest = hashlib.sha256(f"recipe {RECIPE}\n{fragment(lab_options())}".encode())
    digest.update(resources.files(__package__).joinpath("entropy.c").read_bytes())
    return digest.hexdigest()


def kernel_key(source_identity: str) -> str:
    """Name of the folder of a kernel built from this source."""
    return hashlib.sha256(f"{recipe_digest()} {source_identity}".encode()).hexdigest()[:16]


def is_whole(folder: Path) -> bool:
    """Whether all files are there and the kernel is the one that was built."""
    if not all((folder / name).is_file() for name in FILES):
        return False
    try:
        recorded = json.loads((folder / "build.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    with (folder / "linux").open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return isinstance(recorded, dict) and recorded.get("linux_sha256") == digest


def kernel_path() -> Path | None:
    """The kernel that runs use, or None if none was built for this version's options.

    ``entropy.so``, ``config`` and ``build.json`` lie beside it.
    """
    folder = _selection().resolve()
    return folder / "linux" if _selection().is_symlink() and is_whole(folder) else None


def select(folder: Path) -> None:
    """Makes runs use this kernel (atomically; the caller holds the lock)."""
    link = _selection()
    fresh = link.with_name(f"{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(folder.name)
    fresh.replace(link)


@contextmanager
def build_lock(progress: Progress) -> Iterator[None]:
    """Lets one build run at a time for this user; a second one waits and says so."""
    kernels_folder().mkdir(parents=True, exist_ok=True)
    with (kernels_folder() / "lock").open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another set-up that builds the kernel", 0.0)
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


@contextmanager
def build_lock_if_free() -> Iterator[bool]:
    """Yields whether no build is going on; none can start while the block runs."""
    kernels_folder().mkdir(parents=True, exist_ok=True)
    with (kernels_folder() / "lock").open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _selection() -> Path:
    return kernels_folder() / f"selected-{recipe_digest()[:12]}"
