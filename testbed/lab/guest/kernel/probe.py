"""Boots a built kernel for half a second: the only honest test that a machine can run it.

A sandbox may forbid ptrace, executable shared memory or large mappings; each shows here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from testbed.lab.guest.kernel.cache import cache_root
from testbed.lab.hostledger import HostLedger

_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class BootResult:
    """Whether the kernel came up, ran a program and powered off; else why not."""

    booted: bool
    detail: str


def probe_boot(linux: Path, python: Path = Path("/usr/bin/python3")) -> BootResult:
    """Boots ``linux`` with a one-line init and a host folder to answer through."""
    try:
        with (
            HostLedger(cache_root()) as ledger,
            ledger.scratch(Path(tempfile.gettempdir()), "testbed-probe-") as folder,
        ):
            return _boot(linux, python, folder)
    except OSError as error:
        return BootResult(False, str(error))


def _boot(linux: Path, python: Path, folder: Path) -> BootResult:
    init = folder / "init.sh"
    init.write_text(
        "#!/bin/sh\n"
        f"mount -t hostfs -o {folder} none /mnt && echo up > /mnt/booted\n"
        f"exec {python} -I -S -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321FEDC)'\n",
        "ascii",
    )
    init.chmod(0o755)
    argv = [
        str(linux), "time-travel=inf-cpu", "mem=64M", "root=/dev/root", "rootfstype=hostfs",
        "rootflags=/", "ro", f"init={init}", "con=null", "con0=null,fd:1", "quiet",
        f"uml_dir={folder}/", "umid=probe",
    ]  # fmt: skip
    environment = {"HOME": str(folder), "TMPDIR": _memory_folder(), "PATH": os.defpath}
    process = subprocess.Popen(
        argv, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return BootResult(False, f"it did not come up within {_TIMEOUT_S:.0f} s")
    if (folder / "booted").exists():
        return BootResult(True, "boots and powers off")
    return BootResult(False, _last_words(output, process.returncode))


def _memory_folder() -> str:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()


def _last_words(output: str, status: int) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else f"it ended with status {status} and said nothing"
