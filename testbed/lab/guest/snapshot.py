"""A copy of the code as the guest sees it: fixed path, bytecode compiled for that path.

Where a checkout lies and whether its bytecode was compiled shifts a timeline
although the seed is the same. So the guest never sees the checkout: it sees a snapshot keyed
by content, at /mnt/src, whose bytecode names /mnt/src and is never checked against the source.
"""

from __future__ import annotations

import compileall
import fcntl
import hashlib
import importlib.util
import os
import py_compile
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.errors import HostError
from testbed.lab.hostledger import HostLedger

GUEST_SOURCE = "/mnt/src"
_PACKAGES = ("testbed", "testbed_agents")
_DATA = ("topologies", "tc_profiles", "profiles", "scenarios")


def package_folders() -> dict[str, Path]:
    """Where the packages that run in the guest lie, found without importing them."""
    found: dict[str, Path] = {}
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            raise HostError(
                "find the package", name, "it is not installed beside testbed", "run: make setup"
            )
        found[name] = Path(next(iter(spec.submodule_search_locations)))
    return found


def source_files() -> list[tuple[str, Path]]:
    """(path inside the snapshot, path on the host) of every file, in a stable order."""
    files: list[tuple[str, Path]] = []
    for name, folder in package_folders().items():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                files.append((f"{name}/{path.relative_to(folder).as_posix()}", path))
    checkout = package_folders()["testbed"].parent
    for name in _DATA:  # in a checkout beside the packages, in a wheel inside testbed/data
        for path in sorted((checkout / name).glob("*")):
            if path.suffix in (".yaml", ".py"):
                files.append((f"{name}/{path.name}", path))
    return files


def code_digest() -> str:
    """SHA-256 over names and contents of all code that runs in the guest."""
    digest = hashlib.sha256()
    for name, path in source_files():
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def snapshot(cache: Path) -> Path:
    """The snapshot folder for the current code; made once per content, atomically.

    ``cache`` is the folder ``code`` of the product's cache, beside that of the ledgers.
    """
    target = cache / f"code-{code_digest()[:24]}"
    if target.is_dir():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with HostLedger(cache.parent) as ledger:
        with ledger.scratch(cache, "code-making-") as staging:
            _fill(staging)
            try:
                os.rename(staging, target)
            except OSError:
                if not target.is_dir():
                    raise
        _prune(ledger, cache, keep=8)
    return target


@contextmanager
def held_snapshot(cache: Path) -> Iterator[Path]:
    """The snapshot folder, which nobody drops while it is held: a guest reads it to its end."""
    while True:
        target = snapshot(cache)
        with _opened(target) as descriptor:
            if descriptor is not None and _locked(descriptor, target, fcntl.LOCK_SH):
                os.utime(target)
                yield target
                return


@contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """A descriptor of the folder; None where another run has just dropped it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _locked(descriptor: int, folder: Path, how: int) -> bool:
    """Locks it (flock); False where somebody else has it, or it was dropped before that."""
    try:
        fcntl.flock(descriptor, how)
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def _fill(staging: Path) -> None:
    for name, path in source_files():
        copy = staging / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    compileall.compile_dir(
        staging,
        ddir=GUEST_SOURCE,
        quiet=2,
        force=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    staging.chmod(0o755)


def _prune(ledger: HostLedger, cache: Path, keep: int) -> None:
    """Drops the snapshots that were not used for longest, but none that a guest is reading.

    A folder leaves its name first, so that nobody finds half of one.
    """
    kept = sorted(cache.glob("code-????????????????????????"), key=lambda p: p.stat().st_mtime)
    for old in kept[:-keep]:
        with ledger.scratch(cache, "code-making-") as leaving, _opened(old) as descriptor:
            alone = fcntl.LOCK_EX | fcntl.LOCK_NB
            if descriptor is not None and _locked(descriptor, old, alone):
                os.rename(old, leaving / old.name)
