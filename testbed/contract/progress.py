"""Progress marks: a process says that work goes on although the clock may stand still.

A process in the guest sets the times of its own file below ``FOLDER``: hostfs
passes utime through at once, without data or cache, in whole seconds. mtime carries the
virtual time, atime a counter; the host's own ctime says when it happened.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = "logs/progress"
STEPS_PER_MARK = 8
"""A mark is a system call, and steps of small models are short: most steps only count."""


class Mark:
    """One process's progress file. Made while the run folder may be written to."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = str(folder / name)
        self._count = 0
        self._steps = 0
        with open(self._path, "w", encoding="ascii"):
            pass

    def step(self, virtual_ns: int) -> None:
        """Like ``touch`` for one step in ``STEPS_PER_MARK``, the first included."""
        if self._steps % STEPS_PER_MARK == 0:
            self.touch(virtual_ns)
        self._steps += 1

    def touch(self, virtual_ns: int) -> None:
        """Say that work goes on; one system call."""
        self._count += 1
        os.utime(self._path, ns=(self._count * 10**9, max(virtual_ns, 0)))
