"""The facts about this machine that decide what it can run: read once, then a value."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from testbed.host import debian
from testbed.lab.compose.plugin import places
from testbed.lab.guest.kernel.cache import cache_root, kernel_path
from testbed.lab.guest.kernel.probe import BootResult, probe_boot
from testbed.lab.host.faultneeds import lacks
from testbed.lab.host.refusal import has_netem

_CONTAINER_PROGRAMS = ("dockerd", "containerd", "containerd-shim-runc-v2", "runc", "mke2fs")
_COMPOSE = "docker-compose"


@dataclass(frozen=True, slots=True)
class Machine:
    """What was found. Sizes are bytes."""

    architecture: str
    python: tuple[int, int]
    root: bool
    cores: int
    memory_free: int
    disk_free: int
    shm_free: int
    max_map_count: int
    missing_packages: tuple[debian.Package, ...]
    kernel: Path | None
    boot: BootResult | None
    """None where there is no kernel to boot."""
    host_netem: bool
    container_engine: str | None
    """Version of the Docker Engine that answers, or None."""
    missing_container_programs: tuple[str, ...]
    """Of what the lab guest needs to run an Engine of its own."""
    torch_cuda: str | None
    """CUDA version that the installed torch was built for; None for a CPU build."""
    torch_installed: bool
    gpu: bool
    host_fault_lacks: tuple[str, ...] = ()
    """What some kinds of faults need of the running kernel, and it has not."""


def read_machine() -> Machine:
    """Looks at this machine; boots the lab kernel for a moment if there is one."""
    kernel = kernel_path()
    installed, cuda = _torch_build()
    cache = cache_root()
    while not cache.exists():
        cache = cache.parent
    return Machine(
        architecture=platform.machine(),
        python=(sys.version_info.major, sys.version_info.minor),
        root=os.geteuid() == 0,
        cores=len(os.sched_getaffinity(0)),
        memory_free=_memory_free(),
        disk_free=shutil.disk_usage(cache).free,
        shm_free=_shm_free(),
        max_map_count=_number("/proc/sys/vm/max_map_count"),
        missing_packages=debian.missing(),
        kernel=kernel,
        boot=None if kernel is None else probe_boot(kernel),
        host_netem=has_netem(),
        container_engine=_container_engine(),
        missing_container_programs=_missing_container_programs(),
        torch_cuda=cuda,
        torch_installed=installed,
        host_fault_lacks=lacks(),
        gpu=any(Path(name).exists() for name in ("/dev/nvidia0", "/dev/kfd")),
    )


def _number(path: str) -> int:
    """A number from /proc, or 0 where the file is missing."""
    try:
        return int(Path(path).read_text("ascii"))
    except (OSError, ValueError):
        return 0


def _memory_free() -> int:
    """MemAvailable: what can be taken without swapping."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.M)
    return int(match[1]) * 1024 if match else 0


def _shm_free() -> int:
    """Free space of the memory file system that backs a guest's memory; 0 without it."""
    folder = "/dev/shm"
    return shutil.disk_usage(folder).free if os.access(folder, os.W_OK) else 0


def _answer(*argv: str) -> str | None:
    """What a short command prints, or None if it is missing, fails or hangs."""
    if shutil.which(argv[0]) is None:
        return None
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _container_engine() -> str | None:
    return _answer("docker", "version", "--format", "{{.Server.Version}}") or None


def _missing_container_programs() -> tuple[str, ...]:
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    absent = [name for name in _CONTAINER_PROGRAMS if shutil.which(name, path=path) is None]
    if not any(place.is_file() for place in places()):
        absent.append(_COMPOSE)
    return tuple(absent)


def _torch_build() -> tuple[bool, str | None]:
    """(installed, CUDA version of the build), read from its version file: no import."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False, None
    try:
        text = Path(spec.origin).with_name("version.py").read_text("utf-8")
    except OSError:
        return True, None
    match = re.search(r"^cuda\b[^=]*=\s*'([^']+)'", text, re.MULTILINE)
    return True, match[1] if match else None
