"""What the kernel says about a container's control groups: frozen or not, killed for memory.

Version 1 (as in the lab guest) and version 2 are read; a container that ended has none left.
"""

from __future__ import annotations

from pathlib import Path

_ROOT, _PROC = Path("/sys/fs/cgroup"), Path("/proc")


def cgroup_folders(pid: int) -> dict[str, Path]:
    """Folder of each controller that a process is under; key "" is version 2 (cgroups(7)).

    Empty where the process is gone.
    """
    try:
        lines = (_PROC / str(pid) / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    found: dict[str, Path] = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(","):
            found[name] = _ROOT / controllers / path.lstrip("/")
    return found


def is_frozen(pid: int) -> bool:
    """Whether all processes of a container stand still."""
    folders = cgroup_folders(pid)
    if "freezer" in folders:
        return _read(folders["freezer"] / "freezer.state").strip() == "FROZEN"
    return "" in folders and _count(_read(folders[""] / "cgroup.events"), "frozen") == 1


def memory_kills(folders: dict[str, Path]) -> int:
    """How many processes the kernel killed because the container went beyond its memory."""
    if "memory" in folders:
        return _count(_read(folders["memory"] / "memory.oom_control"), "oom_kill")
    return _count(_read(folders[""] / "memory.events"), "oom_kill") if "" in folders else 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""


def _count(text: str, name: str) -> int:
    for line in text.splitlines():
        word, _, number = line.partition(" ")
        if word == name:
            return int(number)
    return 0
