"""The guest's first process: mounts, runs one program, writes its exit status, powers off.

Runs with the bare system Python (no site packages), as process 1 of the guest.
Never imports the project: it is copied next to ``init.json`` and started alone.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import traceback

MS_RDONLY, MS_NOSUID, MS_NODEV = 1, 2, 4
POWER_OFF = 0x4321FEDC

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str, flags: int = 0, data: str = "") -> None:
    """mount(2); raises OSError that names the target."""
    code = _libc.mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()
    )
    if code != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount {kind} on {target}: {os.strerror(number)}")


def mount_system() -> None:
    """Kernel file systems and memory file systems; the root itself stays read-only."""
    mount("proc", "/proc", "proc")
    mount("sys", "/sys", "sysfs")
    mount("run", "/run", "tmpfs", MS_NODEV, "mode=755")
    for folder in ("/run/netns", "/run/lock"):
        os.makedirs(folder, exist_ok=True)
    mount("dev", "/dev", "devtmpfs")
    for folder in ("/dev/pts", "/dev/shm"):
        os.makedirs(folder, exist_ok=True)
    mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=666")
    mount("shm", "/dev/shm", "tmpfs", MS_NODEV)
    mount("tmp", "/tmp", "tmpfs", MS_NODEV | MS_NOSUID, "mode=1777")
    mount("cgroup", "/sys/fs/cgroup", "tmpfs", MS_NODEV, "mode=755")
    mount("var", "/var/tmp", "tmpfs", MS_NODEV | MS_NOSUID, "mode=1777")
    # The same short hosts file everywhere: name look-ups must not depend on the machine.
    os.makedirs("/run/etc", exist_ok=True)


def mount_project(mounts: list[list[str]]) -> None:
    """Host folders at fixed guest paths under /mnt: [host path, name, "ro" | "rw"]."""
    mount("mnt", "/mnt", "tmpfs", MS_NODEV, "mode=755")
    for path, name, mode in mounts:
        target = f"/mnt/{name}"
        os.mkdir(target)
        mount("none", target, "hostfs", MS_RDONLY if mode == "ro" else 0, path)


def loopback_up() -> None:
    """Brings up lo without any helper program."""
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sh14x", b"lo", 0x1 | 0x40)
        fcntl.ioctl(probe, 0x8914, request)  # SIOCSIFFLAGS: IFF_UP | IFF_RUNNING


def run(argv: list[str], environment: dict[str, str], folder: str) -> int:
    """Runs the program as a child, adopts and reaps every orphan meanwhile."""
    child = os.fork()
    if child == 0:
        try:
            out = os.open(f"{folder}/guest.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            null = os.open("/dev/null", os.O_RDONLY)
            os.dup2(null, 0)
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
    """Writes the exit status where the host reads it; closing flushes hostfs."""
    with open(f"{folder}/guest.status", "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def main() -> None:
    """Never returns: an init that ends is a kernel panic."""
    folder = "/mnt/run/logs"
    try:
        with open(os.path.join(os.path.dirname(sys.argv[0]), "init.json"), encoding="utf-8") as f:
            config = json.load(f)
        mount_system()
        mount_project(config["mounts"])
        loopback_up()
        status = run(config["argv"], config["environment"], folder)
        report(folder, f"{status}\n")
    except BaseException as error:
        try:
            report(folder, f"init: {type(error).__name__}: {error}\n")
        except OSError as second:
            os.write(1, f"init: {error}; and: {second}\n".encode())
    finally:
        os.sync()
        _libc.reboot(POWER_OFF)


main()
