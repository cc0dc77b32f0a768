"""Boots one guest, watches it, and brings back how it ended (host side).

Needs no root. The guest runs on a read-only host root; only the run folder is
writable. All that can differ between two machines or two clones is fixed here: paths,
environment, entropy, start date, address layout, CPU-dependent code paths.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from testbed.contract.progress import FOLDER
from testbed.errors import HostError, LabError
from testbed.lab.guest.core import reserved_core
from testbed.lab.guest.lastwords import running_process
from testbed.lab.guest.progress import Progress, kernel_entries, read_progress
from testbed.lab.guest.snapshot import GUEST_SOURCE, held_snapshot, snapshot
from testbed.lab.hostledger import HostLedger

_DISK_RESERVE = 64 * 1024 * 1024
_STIRRING = 100
"""Kernel entries between two looks, a fifth of a second apart, that show a guest at work."""
_PATIENCE = 5
"""So many times longer is waited for a guest at work whose clock stands still."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A built lab kernel and its seeded entropy library."""

    linux: Path
    entropy: Path


@dataclass(frozen=True, slots=True)
class Orders:
    """What to run in the guest. ``program`` follows the venv's Python (fixed paths only)."""

    run_folder: Path
    program: tuple[str, ...]
    memory_bytes: int
    entropy_seed: int
    start_ns: int
    stuck_after_s: float = 120.0
    environment: Mapping[str, str] | None = None
    shown: Mapping[str, Path] = field(default_factory=dict)
    """More folders of the host, seen at /mnt/<key>, read-only: weights, tools."""
    real: bool = False
    """Whether the guest's clock is the host's; ``start_ns`` then says nothing."""
    on_host: bool = False
    """Whether the host's own kernel carries it, in namespaces of its own; needs root."""
    engine: Path | None = None
    """Folder with the disk of a container Engine, seen at /mnt/engine, writable."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the program inside ended; ``virtual_s`` is from the last progress mark."""

    status: int
    wall_s: float
    virtual_s: float


def cpu_capability() -> str:
    """The instruction set that numeric code is pinned to: avx2 where there is one."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        return (
            "avx2" if any("avx2" in line.split() for line in file if "flags" in line) else "default"
        )


def guest_environment() -> dict[str, str]:
    """The whole environment inside the guest; nothing of the caller's leaks in."""
    capability = cpu_capability()
    return {
        "PATH": "/mnt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONPATH": GUEST_SOURCE,
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "MALLOC_MMAP_THRESHOLD_": "1073741824",
        "MALLOC_TRIM_THRESHOLD_": "1073741824",
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "ATEN_CPU_CAPABILITY": capability,
        "ONEDNN_MAX_CPU_ISA": "AVX2" if capability == "avx2" else "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2" if capability == "avx2" else "SSE4_2",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def _memory_folder(need: int) -> str:
    """Where the guest's memory file lies: a memory file system if it is large enough."""
    for folder in ("/dev/shm", tempfile.gettempdir()):
        try:
            free = shutil.disk_usage(folder).free
        except OSError:
            continue
        if os.access(folder, os.W_OK) and free >= need:
            return folder
    return tempfile.gettempdir()


def _kernel_argv(kernel: Kernel, orders: Orders) -> list[str]:
    """The guest kernel's command line: the same for every run folder and clone.

    The kernel stirs its command line into its random numbers, so no path of this run may
    stand in it. The warden starts the kernel in the staging folder; its first program
    finds its files there through the host's /proc, before the guest's own covers it.
    """
    python = os.path.realpath(sys.executable)
    if any(c.isspace() or c in ",\"'" for c in python):
        raise HostError(
            "boot the lab guest", python, "a kernel command line cannot carry this path",
            "use a Python whose path has no spaces, commas and quotes",
        )  # fmt: skip
    return [
        str(kernel.linux),
        *(() if orders.real else _travel(orders.start_ns)),
        f"mem={orders.memory_bytes // (1024 * 1024)}M",
        "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
        f"init={python}",
        "con=null", "con0=null,fd:1",
        "umid=guest", "quiet", "norandmaps", "nf_conntrack.hashsize=512",
        "--", "-I", "-S", "-B", "/proc/self/cwd/init.py",
    ]  # fmt: skip


def _program(kernel: Kernel | None, orders: Orders, staging: Path) -> dict[str, object]:
    """What the warden starts: the guest's kernel, or the room on the host's."""
    if orders.on_host:
        argv = [os.path.realpath(sys.executable), "-I", "-S", "-B", str(staging / "init.py")]
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {"argv": argv, "environment": {"HOME": str(staging), "PATH": path}}
    if kernel is None:
        raise HostError("boot the lab guest", "no kernel", "none was given")
    return {
        "argv": _kernel_argv(kernel, orders),
        "environment": {
            "HOME": str(staging),
            "TMPDIR": _memory_folder(orders.memory_bytes),
            "LD_BIND_NOW": "1",
            "LD_PRELOAD": str(kernel.entropy),
            "LAB_ENTROPY_SEED": str(orders.entropy_seed),
        },
    }


def _travel(start_ns: int) -> tuple[str, ...]:
    """The virtual clock: it begins at a fixed date and jumps from timer to timer."""
    return "time-travel=inf-cpu", f"time-travel-start={start_ns}"


def _prepare(orders: Orders, staging: Path, code: Path) -> None:
    """Writes the guest's first program and its configuration into the staging folder."""
    here = Path(__file__).parent
    first = here.parent / "host" / "room.py" if orders.on_host else here / "init.py"
    shutil.copyfile(first, staging / "init.py")
    environment = guest_environment()
    environment.update(orders.environment or {})
    shared = [
        (orders.run_folder, "run", "rw"),
        (Path(sys.prefix), "venv", "ro"),
        (code, "src", "ro"),
        *((path, name, "ro") for name, path in orders.shown.items()),
        *([(orders.engine, "engine", "rw")] if orders.engine is not None else []),
    ]
    mounts = [
        [str(path.resolve()) if orders.on_host else _linked(path, name, staging), name, mode]
        for path, name, mode in shared
    ]
    config = {
        "mounts": mounts,
        "argv": ["/mnt/venv/bin/python3", "-B", *orders.program],
        "environment": environment,
    }
    (staging / "init.json").write_text(json.dumps(config), encoding="utf-8")


def _linked(path: Path, name: str, staging: Path) -> str:
    """The same words for a folder of the host wherever it lies.

    Programs in the guest read its table of mounts: container programs allocate as much memory as
    it is long, and collect their garbage the earlier for it, which reads the clock.
    """
    links = staging / "mounts"
    links.mkdir(exist_ok=True)
    (links / name).symlink_to(path.resolve())
    return f"/proc/self/cwd/mounts/{name}/."


def code_snapshot(cache: Path) -> Path:
    """The code as the guest will see it; made before anything else can go wrong.

    Raises:
        HostError: the cache folder cannot be written.
    """
    try:
        return snapshot(cache / "code")
    except OSError as error:
        raise HostError(
            "keep a snapshot of the code", str(error.filename or cache), error.strerror or "",
            "make the cache folder writable, or set XDG_CACHE_HOME to one that is",
        ) from error  # fmt: skip


def boot(
    kernel: Kernel | None,
    orders: Orders,
    cache: Path,
    watch: Callable[[Progress, float], None] | None = None,
) -> Outcome:
    """Runs the program in a guest and waits for its end.

    Args:
        kernel: None only where the host's own kernel carries it.
        watch: called about five times a second with progress and wall seconds.

    Raises:
        HostError: the guest could not start, or the disk is full.
        LabError: the guest died, or it is stuck: no virtual progress, no progress mark and no
            system call for ``stuck_after_s`` wall seconds; five times as long where programs
            make system calls, as an Engine does that starts containers on a busy machine.
    """
    logs = orders.run_folder / "logs"
    (orders.run_folder / FOLDER).mkdir(parents=True, exist_ok=True)
    code_snapshot(cache)
    started = time.monotonic()
    with (
        held_snapshot(cache / "code") as code,
        HostLedger(cache) as ledger,
        ledger.scratch(Path(tempfile.gettempdir()), "testbed-guest-") as staging,
        nullcontext() if orders.on_host else reserved_core(cache / "cores", ledger) as core,
    ):
        _prepare(orders, staging, code)
        message = {
            **_program(kernel, orders, staging),
            "cpu": core,
            "console": str(logs / "console.log"),
            "staging": str(staging),
        }
        program = str(Path(__file__).with_name("warden.py"))
        warden = subprocess.Popen(  # the folder is an argument for people who look at ps
            [sys.executable, "-I", "-S", "-B", program, str(staging)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            code_of_guest = _watch(warden, message, orders, staging, started, watch)
        finally:
            if warden.stdin is not None:
                warden.stdin.close()
            warden.wait()
            if warden.stdout is not None:
                warden.stdout.close()
    return _outcome(orders, code_of_guest, time.monotonic() - started)


def _watch(
    warden: subprocess.Popen[bytes],
    message: dict[str, object],
    orders: Orders,
    staging: Path,
    started: float,
    watch: Callable[[Progress, float], None] | None,
) -> int | None:
    """Waits for the guest's end; raises when it is stuck or the disk is full."""
    if warden.stdin is None or warden.stdout is None:
        raise HostError("boot the lab guest", "warden", "it has no pipes")
    warden.stdin.write((json.dumps(message) + "\n").encode())
    warden.stdin.flush()
    last = Progress(-1, "", -1)
    moved = stirred = time.monotonic()
    calls = 0
    while True:
        ready, _, _ = select.select([warden.stdout], [], [], 0.2)
        if ready:
            line = warden.stdout.readline()
            return json.loads(line)["status"] if line else None
        now = time.monotonic()
        progress = read_progress(orders.run_folder)
        if (progress.virtual_ns, progress.marks) != (last.virtual_ns, last.marks):
            last, moved = progress, now
        before, calls = calls, kernel_entries(warden.pid)
        if calls - before >= _STIRRING:
            stirred = now
        if watch is not None:
            watch(progress, now - started)
        quiet_s = now - max(moved, stirred)
        if max(quiet_s, (now - moved) / _PATIENCE) > orders.stuck_after_s:
            running = running_process(staging, orders.run_folder / "logs" / "console.log")
            ran = running or f"{last.last} (by its progress mark)"
            raise LabError(
                "run the lab guest", str(orders.run_folder),
                f"stuck: neither the virtual clock nor any process moved for "
                f"{now - moved:.0f} s wall (virtual time {last.virtual_ns / 1e9:.3f} s); "
                f"the last process that ran is {ran}",
                "a program that spins without system calls stops the virtual clock; "
                "see logs/guest.log, or raise stuck_after if the machine is very slow",
            )  # fmt: skip
        _refuse_lost_folder(orders.run_folder)


def _refuse_lost_folder(run: Path) -> None:
    """Raises HostError when the run can no longer be recorded."""
    try:
        free = shutil.disk_usage(run).free
    except OSError as error:
        raise HostError(
            "run the lab guest", str(run), f"the run folder is gone ({error.strerror})",
            "leave a run folder alone while its run goes on",
        ) from error  # fmt: skip
    if free < _DISK_RESERVE:
        raise HostError(
            "run the lab guest", str(run), "the disk is full",
            "free some space, or choose another folder with --out",
        )  # fmt: skip


def tail(path: Path, lines: int = 12) -> str:
    """Last lines of a log, for an error message."""
    if not path.is_file():
        return "(no log)"
    text = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return "\n".join(f"    {line}" for line in text[-lines:]) or "(empty log)"


def _outcome(orders: Orders, guest: int | None, wall_s: float) -> Outcome:
    logs = orders.run_folder / "logs"
    status_file = logs / "guest.status"
    progress = read_progress(orders.run_folder)
    console = tail(logs / "console.log")
    text = ""
    if status_file.is_file():
        text = status_file.read_text(encoding="ascii", errors="replace").strip()
    if text != "0":  # whatever else went wrong, a full disk may have been its cause
        _refuse_lost_folder(orders.run_folder)
    if not status_file.is_file():
        _refuse_out_of_memory(orders, console)
        raise LabError(
            "run the lab guest", str(orders.run_folder),
            f"the guest died (kernel exit {guest}) before its program ended; console:\n{console}",
            "see logs/console.log and logs/guest.log in the run folder",
        )  # fmt: skip
    status_file.unlink()
    if not text.lstrip("-").isdigit():
        raise LabError("start the lab guest", str(orders.run_folder), text, "run: testbed doctor")
    if int(text) != 0:
        _refuse_out_of_memory(orders, console)
    virtual_ns = max(0, progress.virtual_ns - orders.start_ns)
    return Outcome(int(text), wall_s, virtual_ns / 1e9)


def _refuse_out_of_memory(orders: Orders, console: str) -> None:
    """The guest's own memory, or the host's mappings: each scattered guest page takes one."""
    if "Out of memory: Killed process" in console or "Too few physical memory" in console:
        raise LabError(
            "run the lab guest", str(orders.run_folder),
            f"the guest ran out of memory (it has {orders.memory_bytes // 2**20} MiB)",
            "give it more with --memory, or leave that out to take what was planned",
        )  # fmt: skip
    if "ran out of memory on the host side" in console:
        limit = Path("/proc/sys/vm/max_map_count").read_text(encoding="ascii").strip()
        raise LabError(
            "run the lab guest", str(orders.run_folder),
            f"a program in the guest needed more memory mappings than this host allows "
            f"(vm.max_map_count is {limit}), or the host is out of memory",
            "as root: sysctl -w vm.max_map_count=16777216",
        )  # fmt: skip
