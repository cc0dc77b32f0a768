"""Watches over one guest: starts it, and leaves no process or file behind, whatever happens.

A separate process with the bare system Python. It reads its orders as one JSON
line from stdin and keeps stdin open: end of file there means that the orchestrator is gone
(closed, crashed, or killed with SIGKILL) and the guest must die. Prints one JSON line
``{"status": …}`` when the guest has ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import sys
import time

ADDR_NO_RANDOMIZE = 0x0040000
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NAME = 1, 36, 15

_libc = ctypes.CDLL(None, use_errno=True)


def children(pid: int) -> list[int]:
    """Live direct children of ``pid`` (all its threads)."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
                found += [int(word) for word in file.read().split()]
    return found


def end_all() -> None:
    """Kills every descendant; orphans become ours because we are their subreaper."""
    deadline = time.monotonic() + 4.0
    while time.monotonic() < deadline:
        mine = children(os.getpid())
        if not mine:
            return
        for pid in mine:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)


def start(orders: dict) -> int:  # type: ignore[type-arg]  # runs without the project on its path
    """Starts the guest kernel: pinned, without address randomisation, dying with us."""
    log = os.open(orders["console"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    warden = os.getpid()
    child = os.fork()
    if child:
        os.close(log)
        return child
    try:
        os.setsid()
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != warden:
            os._exit(125)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        if _libc.personality(ctypes.c_ulong(ADDR_NO_RANDOMIZE)) < 0:
            os._exit(124)
        if orders["cpu"] is not None:
            os.sched_setaffinity(0, [orders["cpu"]])
        os.chdir(orders["staging"])
        null = os.open("/dev/null", os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.closerange(3, 256)
        os.execve(orders["argv"][0], orders["argv"], orders["environment"])
    except BaseException as error:
        os.write(2, f"warden: cannot start the guest: {error}\n".encode())
    os._exit(126)


def main() -> int:
    """Returns 0 when the guest ended by itself, 1 when it was ended."""
    line = sys.stdin.buffer.readline()
    if not line:
        return 1
    orders = json.loads(line)
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _libc.prctl(PR_SET_NAME, b"testbed-warden", 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)  # the orchestrator decides; its end is our signal
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    guest = start(orders)
    status: int | None = None
    try:
        while status is None:
            ready, _, _ = select.select([0, reader], [], [])
            if reader in ready and signal.SIGTERM in os.read(reader, 64):
                break
            with contextlib.suppress(ChildProcessError):
                while True:
                    pid, code = os.waitpid(-1, os.WNOHANG)
                    if pid == 0:
                        break
                    if pid == guest:
                        status = os.waitstatus_to_exitcode(code)
            if 0 in ready and not os.read(0, 4096):
                break
    finally:
        end_all()
        shutil.rmtree(orders["staging"], ignore_errors=True)
    with contextlib.suppress(OSError):
        os.write(1, (json.dumps({"status": status}) + "\n").encode())
    return 0 if status is not None else 1


sys.exit(main())
