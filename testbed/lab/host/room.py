"""Runs one program on the host's kernel in namespaces of its own; started by the warden.

::

    warden ── room (waits) ── first process of the room ── the program ── shells, agents …
                              own pids, mounts, network: all end with it

The program sees what it would see in the guest: fixed paths below /mnt, an empty network with
a loopback. Nothing outside changes, so nothing has to be undone: namespaces end with their
processes. Runs with the bare Python and never imports the project.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import sys
import traceback

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT = 1, 2, 4, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def checked(code: int, what: str) -> None:
    """Raises OSError where a call of libc failed."""
    if code != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """mount(2); raises OSError that names the target."""
    code = _libc.mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()
    )
    checked(code, f"mount on {target}")


def furnish(mounts: list[list[str]]) -> None:
    """Folders at fixed paths below /mnt: [host path, name, "ro" | "rw"]; an own /proc and /tmp."""
    mount("none", "/", "none", MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV)
    mount("/proc/sys", "/proc/sys", "none", MS_BIND)  # Mininet raises limits of the whole machine
    mount("none", "/proc/sys", "none", MS_BIND | MS_REMOUNT | MS_RDONLY)
    mount("/proc/sys/net", "/proc/sys/net", "none", MS_BIND)  # of each network namespace
    mount("none", "/proc/sys/net", "none", MS_BIND | MS_REMOUNT)
    mount("mnt", "/mnt", "tmpfs", MS_NODEV, "mode=755")
    for path, name, mode in mounts:
        target = f"/mnt/{name}"
        os.mkdir(target)
        mount(path, target, "none", MS_BIND)
        if mode == "ro":
            mount("none", target, "none", MS_BIND | MS_REMOUNT | MS_RDONLY)
    mount("tmp", "/tmp", "tmpfs", MS_NODEV | MS_NOSUID, "mode=1777")


def loopback_up() -> None:
    """Brings up lo."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sh14x", b"lo", 0x1 | 0x40)
        fcntl.ioctl(probe, 0x8914, request)  # SIOCSIFFLAGS: IFF_UP | IFF_RUNNING


def run(argv: list[str], environment: dict[str, str], folder: str) -> int:
    """Runs the program as a child, adopts and reaps every orphan meanwhile."""
    child = os.fork()
    if child == 0:
        try:
            out = os.open(f"{folder}/guest.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.dup2(out, 1)
            os.dup2(out, 2)
            os.chdir("/tmp")
            os.execve(argv[0], argv, environment)
        except BaseException:
            traceback.print_exc()
        os._exit(127)
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def report(folder: str, text: str) -> None:
    """Writes the exit status where the orchestrator reads it."""
    with open(f"{folder}/guest.status", "w", encoding="ascii") as file:
        file.write(text)


def first(config: dict) -> int:  # type: ignore[type-arg]  # runs without the project on its path
    """The room's first process: when it ends the kernel ends all others of the room."""
    checked(_libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "die with the warden")
    folder = "/mnt/run/logs"
    try:
        furnish(config["mounts"])
        loopback_up()
        report(folder, f"{run(config['argv'], config['environment'], folder)}\n")
    except BaseException as error:
        traceback.print_exc()
        if os.path.isdir(folder):
            report(folder, f"room: {type(error).__name__}: {error}\n")
        return 1
    return 0


def main() -> int:
    """Returns 0 when the room's program ended by itself, whatever its status."""
    with open("init.json", encoding="utf-8") as file:
        config = json.load(file)
    spaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
    checked(_libc.unshare(spaces), "make namespaces")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = first(config)
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


sys.exit(main())
