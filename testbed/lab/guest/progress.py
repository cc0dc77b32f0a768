"""What the host sees of a guest's progress marks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from testbed.contract.progress import FOLDER


@dataclass(frozen=True, slots=True)
class Progress:
    """What the host sees: latest virtual time (ns since guest start), and who marked last."""

    virtual_ns: int
    last: str
    marks: int


def read_progress(run_folder: Path) -> Progress:
    """Reads all marks of a run; cheap (one stat per process)."""
    virtual, marks = 0, 0
    newest: tuple[int, str] = (0, "none yet")
    folder = run_folder / FOLDER
    if not folder.is_dir():
        return Progress(0, newest[1], 0)
    for entry in os.scandir(folder):
        try:
            info = entry.stat()
        except FileNotFoundError:  # the mark of a breakpoint, which has just been left
            continue
        fresh = info.st_atime_ns < 10**18  # a counter, not a date: at least one mark was set
        if fresh:
            marks += info.st_atime_ns // 10**9
            virtual = max(virtual, info.st_mtime_ns)
        newest = max(newest, (info.st_ctime_ns, entry.name))
    return Progress(virtual, newest[1], marks)


def kernel_entries(warden: int) -> int:
    """How often the guest of a warden has waited for its programs so far; 0 where it has ended.

    Programs of the guest are traced by its kernel: each system call and each page fault of theirs
    is one such wait. A program that spins makes none.
    """
    try:
        children = Path(f"/proc/{warden}/task/{warden}/children").read_text("ascii").split()
        return sum(map(_waits, children))
    except OSError:
        return 0


def _waits(pid: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
        name, _, value = line.partition(":")
        if name == "voluntary_ctxt_switches":
            return int(value)
    return 0
