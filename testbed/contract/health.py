"""How a container says that it is ready: through a pipe in its own memory file system.

A health check that asks again and again would start a program in each container every other
second, and take time away from what is measured. This one reads the pipe and sleeps until the
program has something to say; the next one sleeps as long as the container lives.

``python -m testbed.contract.health MODULE …`` makes the pipe and becomes that module's program.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

PIPE = "/tmp/health"
WORD = "ready"
CHECK = ("CMD", "grep", "-q", "-m", "1", WORD, PIPE)
"""The health check: 0 once the word was said, another status where the program ended without it."""


class Health:
    """The writing end."""

    def __init__(self, path: Path = Path(PIPE)) -> None:
        """Raises OSError where there is no pipe."""
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)

    def say_ready(self) -> None:
        """The next check, or the one that waits, ends well."""
        os.write(self._descriptor, f"{WORD}\n".encode("ascii"))


def make_pipe(path: Path = Path(PIPE)) -> None:
    """Makes the pipe anew: one that is left from an earlier start may hold a word."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def become(module: str, *arguments: str) -> None:
    """Runs a module as the program that this process is."""
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    make_pipe()
    become(*sys.argv[1:])
