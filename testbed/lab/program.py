"""Runs another program of ours to its end, as a process that dies with this one."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended and what it said."""

    status: int
    out: str
    err: str


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def run_program(
    *argv: str, timeout_s: float | None = None, environment: Mapping[str, str] | None = None,
    first: Callable[[], None] = lambda: None,
) -> Ended:  # fmt: skip
    """Runs ``argv`` (no shell) and waits for it; in our environment, or in the one given.

    Args:
        first: called in the new process before the program.

    Raises:
        OSError: it cannot be started.
        TimeoutError: it took longer than ``timeout_s``.
    """

    def prepared() -> None:
        _die_with_parent()
        first()

    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=timeout_s,
            stdin=subprocess.DEVNULL, preexec_fn=prepared, env=environment,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"{argv[0]} took longer than {timeout_s} s") from error
    return Ended(done.returncode, done.stdout, done.stderr)


def run_module(module: str, *arguments: str) -> Ended:
    """Runs ``python -m module`` with this interpreter."""
    return run_program(sys.executable, "-m", module, *arguments)


def end_process(process: subprocess.Popen[bytes], most_s: float) -> None:
    """SIGTERM, so that it can end in order; SIGKILL where that takes longer than ``most_s``."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(most_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
