"""Makes a block device of a file and mounts its file system (guest side, root).

Newer kernels mount no block device that somebody holds open for writing, and mount(8) holds its
loop device open while it mounts. So the device is set up here, closed, and mounted after that.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

from testbed.errors import LabError
from testbed.lab.ledger import Ledger
from testbed.lab.program import run_program

_GET_FREE, _CONFIGURE, _CLEAR = 0x4C82, 0x4C0A, 0x4C01
_CONFIG = struct.Struct("=II 40x 16x 64s 64x 32x 16x 64x")
"""struct loop_config of linux/loop.h: descriptor, block size; all else 0 but the file's name."""
_OPTIONS = "noatime,noinit_itable,no_prefetch_block_bitmaps,nobarrier"
"""No thread that prepares tables at random times; no flush that waits for the host's disk."""


def attach(ledger: Ledger, file: Path) -> Path:
    """A free loop device on the file; undone by the ledger.

    Raises:
        LabError: there is none, or the kernel refuses.
    """
    try:
        control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
        try:
            device = Path(f"/dev/loop{fcntl.ioctl(control, _GET_FREE)}")
        finally:
            os.close(control)
        ledger.acquire("loop", f"{device} on {file}", lambda: _detach(device))
        with file.open("r+b") as backing, device.open("r+b", buffering=0) as block:
            config = _CONFIG.pack(backing.fileno(), 0, os.fsencode(file)[:63])
            fcntl.ioctl(block, _CONFIGURE, config)
    except OSError as error:
        raise LabError(
            "attach a loop device", str(file), error.strerror or str(error),
            "the lab kernel may lack the loop device: testbed kernel build",
        ) from error  # fmt: skip
    return device


def mount_disk(ledger: Ledger, disk: Path, target: Path) -> None:
    """Mounts a file with an ext4 through the loop device.

    Raises:
        LabError: the kernel refuses.
    """
    mount(ledger, target, "-t", "ext4", "-o", _OPTIONS, str(attach(ledger, disk)))


def mount(ledger: Ledger, target: Path, *how: str) -> None:
    """Mounts on a folder, which is made; undone by the ledger.

    Raises:
        LabError: the kernel refuses.
    """
    target.mkdir(parents=True, exist_ok=True)
    ledger.acquire("mount", str(target), lambda: _unmount(target))
    done = run_program("mount", *how, str(target))
    if done.status != 0:
        raise LabError(
            "mount", str(target), done.err.strip(),
            "the lab kernel may lack an option: testbed kernel build",
        )  # fmt: skip


def _detach(device: Path) -> None:
    with device.open("rb", buffering=0) as block:
        fcntl.ioctl(block, _CLEAR)


def _unmount(target: Path) -> None:
    if not target.is_mount():
        return
    done = run_program("umount", str(target))
    if done.status != 0:
        raise LabError("unmount", str(target), done.err.strip())
