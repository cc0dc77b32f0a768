"""Runs the tools of a build: one process group, a clean environment, everything logged."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from testbed.errors import HostError

_PR_SET_PDEATHSIG = 1
_LAST_LINES = 15

_PINNED = {
    # What would otherwise make two builds of one source differ.
    "LC_ALL": "C",
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 2026",
    "KBUILD_BUILD_USER": "lab",
    "KBUILD_BUILD_HOST": "lab",
    "KBUILD_BUILD_VERSION": "1",
}


class Toolbox:
    """Runs commands in ``folder`` and appends all they print to ``log``."""

    def __init__(self, folder: Path, log: Path) -> None:
        self._folder = folder
        self._log = log

    def run(
        self,
        attempt: str,
        argv: Sequence[str],
        on_line: Callable[[str], None] | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        """Runs one command to its end.

        The caller's environment is not passed on: ``make setup`` would otherwise hand
        its own MAKEFLAGS to the kernel's build.

        Raises:
            HostError: it failed; the last lines that it printed are the cause.
        """
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": os.environ.get("HOME", "/"),
            **_PINNED,
            **(extra or {}),
        }
        with self._log.open("a", encoding="utf-8") as log:
            process = subprocess.Popen(
                list(argv),
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
            try:
                if process.stdout is not None:
                    for line in process.stdout:
                        log.write(line)
                        if on_line is not None:
                            on_line(line)
                status = process.wait()
            finally:
                _end_group(process)
        if status != 0:
            raise HostError(
                attempt,
                " ".join(argv),
                f"it ended with status {status}; its last lines:\n{self._tail()}",
                "see the whole build log named below; install what it misses",
            )

    def _tail(self) -> str:
        lines = self._log.read_text("utf-8", errors="replace").splitlines()
        return "\n".join(f"    {line}" for line in lines[-_LAST_LINES:])


def _end_with_parent() -> None:
    """In the child: ends when the orchestrator is killed, even by SIGKILL."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _end_group(process: subprocess.Popen[str]) -> None:
    """Ends the group that we started, if any of it is left, and closes its pipe."""
    if process.stdout is not None:
        process.stdout.close()
    if process.poll() is not None:
        return
    for number, patience in ((signal.SIGTERM, 10.0), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            continue
        break
