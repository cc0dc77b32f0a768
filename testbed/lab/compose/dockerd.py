"""A private Engine for a machine where none runs (needs root): started, used, ended.

::

    <cache>/engine/data         images and build cache; stay for the next time
    <cache>/engine/lock         one private Engine at a time; a second command waits
    /run/testbed-engine-…/      sock, pid, log, exec, and data, a link: for the time of one command

It gets SIGTERM when the process that started it dies, however that comes about. What is then
still there stands in the host's ledger, and ``testbed gc`` ends it: by the process id that it
wrote itself, and only if that process is a dockerd of the very folder.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.errors import HostError
from testbed.lab.compose.refusal import refusal
from testbed.lab.hostledger import HostLedger, Kind
from testbed.lab.program import end_process

FOLDER = "engine"
"""Name of the private Engine's folder below the cache."""

_RUN = Path("/run")
_DATA = "data"
_START_MOST_S = 60.0
_END_MOST_S = 30.0
_STEP_S = 0.05
_PR_SET_PDEATHSIG = 1
_MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)


def can_start() -> str:
    """Why a private Engine cannot be started here; empty where it can."""
    if os.geteuid() != 0:
        return "no Engine runs, and only root can start one"
    if shutil.which("dockerd") is None:
        return "no Engine runs, and no dockerd is installed"
    return ""


def dockerd_argv(folder: Path, data: Path, networks: bool) -> tuple[str, ...]:
    """The daemon's command line. Without ``networks`` it leaves the host's network alone."""
    quiet = ("--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false")
    return (
        "dockerd", "--config-file", str(folder / "none.json"), "--data-root", str(data),
        "--exec-root", str(folder / "exec"), "--pidfile", str(folder / "pid"),
        "-H", f"unix://{folder / 'sock'}", *(() if networks else quiet),
    )  # fmt: skip


@contextmanager
def private_dockerd(cache: Path, say: Callable[[str], None], networks: bool) -> Iterator[str]:
    """Starts dockerd, yields its address once it listens, and ends it afterwards.

    Args:
        cache: the product's cache folder.
        say: told what takes time.
        networks: whether containers will have networks; a build needs none.

    Raises:
        HostError: it cannot be started, or does not listen within a minute.
    """
    data = cache / FOLDER / "data"
    data.mkdir(parents=True, exist_ok=True)
    with (
        _alone(cache / FOLDER / "lock", say),
        HostLedger(cache) as ledger,
        ledger.scratch(_RUN, "testbed-engine-") as folder,
    ):
        furnish(folder, data)
        ledger.acquire(Kind.ENGINE, folder)
        process = _start(dockerd_argv(folder, data, networks), folder / "log")
        try:
            _wait_until_it_listens(process, folder)
            yield f"unix://{folder / 'sock'}"
        finally:
            end_process(process, _END_MOST_S)
            _unmount(folder)
            ledger.release(Kind.ENGINE, folder)


def furnish(folder: Path, data: Path) -> None:
    """Puts into an Engine's folder what it starts from, and what tells later where its data is."""
    (folder / "none.json").write_text("{}", "ascii")  # the host's own settings stay out
    (folder / _DATA).symlink_to(data)


@contextmanager
def _alone(lock: Path, say: Callable[[str], None]) -> Iterator[None]:
    with lock.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another command that uses the private Engine")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _end_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _start(argv: tuple[str, ...], log: Path) -> subprocess.Popen[bytes]:
    """Starts the daemon in a session of its own, so that Ctrl-C reaches it only through us."""
    with log.open("wb") as stream:
        try:
            return subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT,
                start_new_session=True, preexec_fn=_end_with_parent,
            )  # fmt: skip
        except OSError as error:
            raise HostError(
                "start a private Engine", argv[0], str(error), "install Docker Engine"
            ) from error


def _wait_until_it_listens(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Returns when the socket is there: dockerd makes it once it is ready to serve."""
    deadline = time.monotonic() + _START_MOST_S
    watched = os.pidfd_open(process.pid)
    try:
        while not (folder / "sock").exists():
            ended, _, _ = select.select([watched], [], [], _STEP_S)
            if ended or time.monotonic() > deadline:
                said = (folder / "log").read_text("utf-8", "replace")
                raise refusal(
                    "start a private Engine", "dockerd", said, "start an Engine by hand, then again"
                )
    finally:
        os.close(watched)


def end_left_dockerd(folder: Path) -> str:
    """Ends the dockerd that a dead owner left in ``folder``; says in words what was done.

    Raises:
        OSError: it does not end, or its files cannot be read.
    """
    pid = _pid_of(folder)
    if pid is None:
        _unmount(folder)
        return "already gone"
    watched = os.pidfd_open(pid)
    try:
        if _pid_of(folder) != pid:  # the number could have been given to another process
            return "already gone"
        signal.pidfd_send_signal(watched, signal.SIGTERM)
        if not select.select([watched], [], [], _END_MOST_S)[0]:
            signal.pidfd_send_signal(watched, signal.SIGKILL)
            select.select([watched], [], [], _END_MOST_S)
    finally:
        os.close(watched)
    _unmount(folder)
    return "ended"


def _pid_of(folder: Path) -> int | None:
    """The process that wrote the folder's pid file, if it lives and is a dockerd of this folder."""
    try:
        pid = int((folder / "pid").read_text("ascii"))
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if os.fsencode(folder / "pid") in command else None


def _unmount(folder: Path) -> None:
    """Unmounts what an Engine had mounted below its folder and on its data root, innermost first.

    An Engine that ends while it starts leaves its data root mounted on itself.
    """
    inside, data = os.fsencode(folder), os.fsencode(os.path.realpath(folder / _DATA))
    for line in reversed(Path("/proc/self/mounts").read_bytes().splitlines()):
        # Spaces and the like stand there as octal numbers (proc(5)).
        place = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), line.split()[1])
        if place == data or place.startswith((inside + b"/", data + b"/")):
            _libc.umount2(place, _MNT_DETACH)
