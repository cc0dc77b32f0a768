"""Prepares disks with which an Engine in the guest finds its images ready (host side).

::

    <cache>/engines/
        <digest>/         prepared once, then only read
            engine.ext4   the Engine's data root, with the images loaded
            bin/          the Engine's programs without the processor's counter
        making-…/         one that is being prepared, in a guest of its own
        run-…/            the throw-away copy of one run
        lock              one preparation or copy of a disk at a time; others wait

Needs no root: mke2fs makes an empty file system in a file, and a guest mounts it, starts the
host's Engine on it, and loads an archive as ``docker save`` writes it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import HostError, LabError
from testbed.lab.compose.keylock import key_lock, key_lock_if_free
from testbed.lab.compose.sparsefile import allocated_bytes, copy_sparse
from testbed.lab.compose.steadyprogram import copy_steady
from testbed.lab.guest.boot import Kernel, Orders, boot, tail
from testbed.lab.hostledger import HostLedger
from testbed.lab.program import run_program

DISK, PROGRAMS = "engine.ext4", "bin"
"""Names in the folder of a run's copy."""
LOCK = "lock"
LAYOUT = 2
"""Rises when what lies on a prepared disk changes."""
ENGINE = ("dockerd", "containerd", "containerd-shim-runc-v2", "runc")
_GIB = 2**30
_LEAST_FREE = 256 * 2**20
_KEPT = 3
_START_NS = 1_767_139_200 * 10**9
"""A day before any run begins."""
_SEED = 0x5EED_0F_AD15C
"""No run may have this one: an Engine names things by chance, and would draw names twice."""
_FIXED_ID = "7c5f2ab0-0000-4000-8000-7465737462ed"
_FEATURES = (
    "none,extent,huge_file,flex_bg,metadata_csum,64bit,dir_nlink,extra_isize,ext_attr,"
    "dir_index,filetype,large_file,sparse_super"
)
_ROOM = "free some space, or set XDG_CACHE_HOME to a folder on a larger disk"
_PLACES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

Export = Callable[[Path], None]
"""Writes the archive with the wanted images at the path that it is given."""


@dataclass(frozen=True, slots=True)
class Stock:
    """The images that an Engine is to have: pairs of (name with tag, ``sha256:…`` id)."""

    images: tuple[tuple[str, str], ...]

    def digest(self, programs: dict[str, Path]) -> str:
        """Names the disk that holds these images, as an Engine of these programs keeps them."""
        digest = hashlib.sha256(json.dumps([LAYOUT, sorted(self.images)]).encode())
        for name, path in sorted(programs.items()):
            with path.open("rb") as stream:
                digest.update(
                    f"{name} {hashlib.file_digest(stream, 'sha256').hexdigest()}".encode()
                )
        return digest.hexdigest()[:24]


def engine_programs() -> dict[str, Path]:
    """Where the host's Engine lies.

    Raises:
        HostError: a part of it is missing.
    """
    return {name: _installed(name, "docker.io") for name in ENGINE}


@contextmanager
def engine_copy(
    stock: Stock, export: Export, kernel: Kernel, cache: Path, ledger: HostLedger,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Path]:  # fmt: skip
    """A folder with a disk and programs for one run (``Orders.engine``); gone afterwards.

    Prepared first where these images were not prepared before.

    Args:
        export: called only where the disk must be prepared.
        say: told in words what takes time.

    Raises:
        HostError: a program is missing, or the disk of the host is full.
        LabError: the archive is damaged, or lacks an image.
    """
    folder = cache / "engines"
    programs = engine_programs()
    prepared = folder / stock.digest(programs)
    with _naming_the_disk(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with ledger.scratch(folder, "run-") as copy:
        with (
            _naming_the_disk(folder),
            key_lock(folder / LOCK, prepared.name, lambda: say("waiting for the same images")),
        ):
            if not prepared.is_dir():
                say("preparing the images for the lab guest")
                with HostLedger(cache) as own, own.scratch(folder, "making-") as making:
                    _prepare(making, programs, stock, export, kernel, cache)
                    _forget_oldest(making, _KEPT - 1)
                    (making / "ready").rename(prepared)
            os.utime(prepared)
            _refuse_full(folder, allocated_bytes(prepared / DISK))
            copy_sparse(prepared / DISK, copy / DISK)
            shutil.copytree(prepared / PROGRAMS, copy / PROGRAMS, copy_function=os.link)
        yield copy


@contextmanager
def _naming_the_disk(folder: Path) -> Iterator[None]:
    """Turns what the host's disk refuses into an error with a remedy."""
    try:
        yield
    except OSError as error:
        raise HostError(
            "keep the images for the lab guest", str(error.filename or folder),
            error.strerror or str(error), _ROOM,
        ) from error  # fmt: skip


def _prepare(
    making: Path, programs: dict[str, Path], stock: Stock, export: Export,
    kernel: Kernel, cache: Path,
) -> None:  # fmt: skip
    """Makes ``making/ready``; what else lies in ``making`` goes with the folder."""
    maker = _installed("mke2fs", "e2fsprogs")
    ready = making / "ready"
    (ready / PROGRAMS).mkdir(parents=True)
    for name, program in programs.items():
        copy_steady(program, ready / PROGRAMS / name)
    archive = making / "images.tar"
    export(archive)
    size = archive.stat().st_size
    _refuse_full(making, 3 * size)
    for path in (ready / DISK, making / "unpacking.ext4"):
        _make_disk(maker, path, 8 * _GIB + 3 * size)
    (making / "stock.json").write_text(json.dumps(sorted(stock.images)), encoding="utf-8")
    (making / "logs").mkdir()
    inside = ("-m", "testbed.lab.compose.stocking", "/mnt/run")
    outcome = boot(kernel, Orders(making, inside, _GIB, _SEED, _START_NS, engine=ready), cache)
    failure = making / "failure.json"
    if failure.is_file():
        raise LabError(**json.loads(failure.read_text(encoding="utf-8")))
    if outcome.status != 0:
        raise LabError(
            "load images in the lab guest", str(making),
            f"it ended with status {outcome.status}:\n{tail(making / 'logs/guest.log')}\n"
            f"{tail(making / 'logs/dockerd.log')}",
        )  # fmt: skip
    with (ready / DISK).open("rb") as stream:
        os.fsync(stream.fileno())


def _make_disk(maker: Path, path: Path, size: int) -> None:
    """An empty ext4 in a sparse file, the same each time: its ids and dates are given."""
    with path.open("xb") as stream:
        stream.truncate(size - size % 4096)
    done = run_program(
        str(maker), "-q", "-F", "-t", "ext4", "-b", "4096", "-I", "256", "-i", "16384", "-m", "0",
        "-O", _FEATURES, "-U", _FIXED_ID,
        "-E", f"hash_seed={_FIXED_ID},lazy_itable_init=1,nodiscard,root_owner=0:0", str(path),
        environment={"PATH": _PLACES, "E2FSPROGS_FAKE_TIME": str(_START_NS // 10**9)},
    )  # fmt: skip
    if done.status != 0:
        cause = done.err.strip() or done.out.strip()
        raise HostError("make a file system", str(path), cause, _ROOM)


def _forget_oldest(making: Path, keep: int) -> None:
    """Removes what was not used for longest and nobody is copying; it leaves its name first."""
    folder = making.parent
    found = [path for path in folder.iterdir() if path.name.isalnum() and path.is_dir()]
    found.sort(key=lambda path: path.stat().st_mtime)
    for old in found[: max(0, len(found) - keep)]:
        with key_lock_if_free(folder / LOCK, old.name) as free:
            if free:
                old.rename(making / old.name)


def _installed(name: str, package: str) -> Path:
    found = shutil.which(name, path=_PLACES)
    if found is None:
        raise HostError(
            "prepare an Engine for the lab guest", name, "it is not installed on this machine",
            f"as root: apt-get install {package}",
        )  # fmt: skip
    return Path(found)


def _refuse_full(folder: Path, need: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < need + _LEAST_FREE:
        raise HostError(
            "make room for images", str(folder),
            f"it needs {(need + _LEAST_FREE) // 2**20} MiB, and {free // 2**20} MiB are free",
            _ROOM,
        )  # fmt: skip
