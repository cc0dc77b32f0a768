"""Builds the lab kernel: check, unpack, configure, compile, verify, move into place.

Everything happens in ``<cache>/kernels/building`` while the lock is held; that folder is
removed on success, failure and interruption, and a leftover of a killed build by the next
or by ``testbed gc``.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from types import FrameType

from testbed.errors import HostError
from testbed.lab.guest.kernel.cache import (
    build_lock,
    cache_root,
    is_whole,
    kernel_key,
    kernels_folder,
    recipe_digest,
    select,
)
from testbed.lab.guest.kernel.make import Toolbox
from testbed.lab.guest.kernel.options import fragment, known_to, lab_options, missing
from testbed.lab.guest.kernel.progress import Progress, silent
from testbed.lab.guest.kernel.quantum import round_timer_events
from testbed.lab.guest.kernel.source import KernelSource, open_source
from testbed.lab.hostledger import HostLedger, Kind

DISK_BYTES = 2 * 1024**3
"""What an unpacked and built tree takes (1.8 GB measured with 6.12), with a margin."""

TOOLS = ("gcc", "make", "flex", "bison", "bc", "tar", "xz", "ld", "gzip")

_STEPS = 1470
"""Lines that a quiet build of 6.12 prints; other versions differ, so it is an estimate."""

_STEP = re.compile(r"  [A-Z0-9_]+ +(\S+)")


def build_kernel(
    source: Path | None = None, progress: Progress = silent, jobs: int | None = None
) -> Path:
    """Builds the lab kernel, or finds it built, and makes runs use it.

    Args:
        source: kernel tree or tarball, 6.6 or later; None is Debian's linux-source-6.12.
        progress: told every step and the share that is done.
        jobs: compilers at a time; None is one for each core of this process.

    Returns:
        Path of the executable ``linux``; ``entropy.so`` lies beside it.

    Raises:
        UsageError: the source is none, or too old.
        HostError: this machine cannot build it; nothing half made is left, except the
            build log that the message names.
    """
    require_host()
    progress("checking the source", 0.0)
    chosen = open_source(source)
    key = kernel_key(chosen.identity())
    folder = kernels_folder() / key
    with build_lock(progress):
        if not is_whole(folder):
            with _building() as place:
                began = time.monotonic()
                _build(chosen, place, progress, jobs or len(os.sched_getaffinity(0)))
                _record(place, chosen, key, time.monotonic() - began)
                if folder.exists():
                    shutil.rmtree(folder)
                (place / "result").rename(folder)
        select(folder)
    progress("ready", 1.0)
    return folder / "linux"


def require_host() -> None:
    """Refuses a machine that cannot build or run the lab kernel.

    Raises:
        HostError: it is not x86-64 Linux, a tool is missing, or the disk is too full.
    """
    machine = (platform.system(), platform.machine())
    if machine != ("Linux", "x86_64"):
        raise HostError(
            "build the lab kernel", " ".join(machine), "User-Mode Linux needs an x86-64 Linux host",
            "use an x86-64 machine",
        )  # fmt: skip
    absent = [name for name in TOOLS if shutil.which(name) is None]
    if absent:
        raise HostError(
            "build the lab kernel", ", ".join(absent), "not installed", "make setup (as root)"
        )
    place = kernels_folder()
    place.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(place).free
    if free < DISK_BYTES:
        raise HostError(
            "build the lab kernel", str(place), f"{free / 1e9:.1f} GB are free, 2.1 GB are needed",
            "free some space, or point XDG_CACHE_HOME at a larger disk",
        )  # fmt: skip


def _build(source: KernelSource, place: Path, progress: Progress, jobs: int) -> None:
    log = place / "build.log"
    tree = place / "tree"
    output = place / "output" if source.is_tree else tree
    output.mkdir()
    toolbox = Toolbox(place, log)
    try:
        progress("unpacking the source", 0.0)
        if source.is_tree:  # links to a tree that is not ours to change
            argv = ["cp", "-as", str(source.path.resolve()), str(tree)]
        else:
            argv = ["tar", "-x", "-f", str(source.path), "-C", str(tree), "--strip-components=1"]
        toolbox.run("unpack the kernel source", argv)
        round_timer_events(tree)
        make = ["make", "-C", str(tree), "ARCH=um"]
        if source.is_tree:
            make.append(f"O={output}")
        wanted = known_to(lab_options(), source.version)
        (place / "wanted.config").write_text(fragment(wanted), "ascii")
        progress("configuring", 0.02)
        toolbox.run(
            "configure the lab kernel",
            [*make, "allnoconfig"],
            extra={"KCONFIG_ALLCONFIG": str(place / "wanted.config")},
        )
        lacking = missing(wanted, (output / ".config").read_text("utf-8"))
        if lacking:
            raise HostError(
                "configure the lab kernel", str(source.path),
                f"the kernel does not take these options: {', '.join(map(str, lacking))}",
                "use Debian's linux-source-6.12, with which the options were tested",
            )  # fmt: skip
        toolbox.run("compile the lab kernel", [*make, f"-j{jobs}", "linux"], _Counter(progress))
        _collect(place, output, toolbox)
    except HostError as error:
        kept = place.with_name("failed-build.log")
        if log.exists():
            log.replace(kept)
        remedy = f"{error.remedy}\n  build log: {kept}"
        raise HostError(error.attempt, error.subject, error.cause, remedy) from error


class _Counter:
    """Turns the lines of a quiet kernel build into a share of the whole."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._seen = 0

    def __call__(self, line: str) -> None:
        if match := _STEP.match(line):
            self._seen += 1
            self._progress(f"compiling {match[1]}"[:48], min(0.99, 0.03 + self._seen / _STEPS))


def _collect(place: Path, output: Path, toolbox: Toolbox) -> None:
    """Puts what is kept into ``result``: the kernel, entropy.so, the configuration."""
    result = place / "result"
    result.mkdir()
    code = place / "entropy.c"
    code.write_bytes(resources.files(__package__).joinpath("entropy.c").read_bytes())
    flags = ["-O2", "-Wall", "-Werror", "-shared", "-fPIC"]
    argv = ["gcc", *flags, "-o", str(result / "entropy.so"), str(code)]
    toolbox.run("compile the entropy library", argv)
    shutil.copyfile(output / ".config", result / "config")
    shutil.copyfile(output / "linux", result / "linux")
    (result / "linux").chmod(0o755)


def _record(place: Path, source: KernelSource, key: str, seconds: float) -> None:
    result = place / "result"
    digests = {
        f"{name.replace('.', '_')}_sha256": hashlib.sha256((result / name).read_bytes()).hexdigest()
        for name in ("linux", "entropy.so", "config")
    }
    record = {
        "key": key,
        "version": f"{source.version[0]}.{source.version[1]}",
        "source": str(source.path),
        "recipe_sha256": recipe_digest(),
        "build_s": round(seconds, 1),
        **digests,
    }
    (result / "build.json").write_text(json.dumps(record, indent=2) + "\n", "utf-8")


@contextmanager
def _building() -> Iterator[Path]:
    """The one folder in which a build happens; gone afterwards, however it ended."""
    place = kernels_folder() / "building"
    with _terminated_like_interrupt(), HostLedger(cache_root()) as ledger:
        ledger.acquire(Kind.BUILD, place)
        try:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)
            if not place.exists():
                ledger.release(Kind.BUILD, place)


@contextmanager
def _terminated_like_interrupt() -> Iterator[None]:
    """Turns SIGTERM into an exception, so that cleaning up happens for it too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
