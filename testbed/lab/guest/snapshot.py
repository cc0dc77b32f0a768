"""A copy of the code as the guest sees it: fixed path, bytecode compiled for that path.

Where a checkout lies and whether its bytecode was compiled shifts a timeline
although the seed is the same. So the guest never sees the checkout: it sees a snapshot keyed
by content, at /mnt/src, whose bytecode names /mnt/src and is never checked against the source.
"""

from __future__ import annotations

import compileall
import hashlib
import importlib.util
import os
import py_compile
import shutil
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
    with (
        HostLedger(cache.parent) as ledger,
        ledger.scratch(cache, "code-making-") as staging,
    ):
        _fill(staging)
        try:
            os.rename(staging, target)
        except OSError:
            if not target.is_dir():
                raise
    _prune(cache, keep=8)
    return target


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


def _prune(cache: Path, keep: int) -> None:
    """Drops the oldest snapshots; a running guest holds its files open through its mounts."""
    kept = sorted(cache.glob("code-????????????????????????"), key=lambda p: p.stat().st_mtime)
    for old in kept[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
