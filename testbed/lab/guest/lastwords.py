"""Learns from a guest that no longer moves which process it is running.

The guest kernel listens on a socket in its staging folder (its management console) and
serves it by interrupt, even while a program spins and the clock stands still. It is
told to crash, and the crash names the process. Used only when the run is lost already.
"""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import time
from pathlib import Path

_MAGIC, _VERSION = 0xCAFEBABE, 2
_CRASH = b"sysrq c"  # its last words name the process that it interrupts
_RUNNING = re.compile(r"Comm: (\S+)")


def running_process(staging: Path, console: Path, patience_s: float = 2.0) -> str | None:
    """Ends the guest; the name of the process that it was running, or None if it says none."""
    sockets = sorted(staging.glob(".uml/*/mconsole"))
    if not sockets:
        return None
    before = console.stat().st_size if console.is_file() else 0
    request = struct.pack("=III512s", _MAGIC, _VERSION, len(_CRASH), _CRASH)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asker, contextlib.suppress(OSError):
        asker.sendto(request, str(sockets[0]))
    deadline = time.monotonic() + patience_s
    while True:
        said = ""
        if console.is_file():
            with console.open("rb") as file:
                file.seek(before)
                said = file.read().decode(errors="replace")
        found = _RUNNING.search(said)
        if found is not None:
            return found[1]
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.05)  # the console is written by another process; there is nothing to await
