"""TCP sockets of a node from the kernel's own list: no program is started, no clock is read.

Opening one of Python's own files takes 2 us of virtual time in the lab guest, which are reads of
the clock; bare system calls take none.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from pathlib import Path

from testbed.contract.breakpoint import Socket
from testbed.errors import LabError

_STATES = (
    "established", "syn-sent", "syn-received", "fin-wait-1", "fin-wait-2", "time-wait", "close",
    "close-wait", "last-ack", "listen", "closing", "new-syn-received",
)  # fmt: skip
"""As numbered from 1 by the kernel (include/net/tcp_states.h)."""


def sockets(namespace: str) -> tuple[Socket, ...]:
    """Those of the network namespace at ``/proc/<pid>/ns/net``, by their own address.

    Raises:
        LabError: whoever held it is gone.
    """
    path = Path(namespace).parent.parent / "net" / "tcp"
    try:
        return parse(_read(path).decode("ascii"))
    except OSError as error:
        raise LabError("list sockets", str(path), error.strerror or str(error)) from error


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts: list[bytes] = []
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def parse(text: str) -> tuple[Socket, ...]:
    """The kernel's list, ``/proc/net/tcp``; the first line is its heading."""
    found: list[Socket] = []
    for line in text.splitlines()[1:]:
        _, here, there, state, queues, *_ = line.split()
        unsent, unread = (int(size, 16) for size in queues.split(":"))
        found.append(
            Socket(
                state=_STATES[int(state, 16) - 1], here=_address(here), there=_address(there),
                unsent=unsent, unread=unread,
            )
        )  # fmt: skip
    return tuple(sorted(found, key=lambda one: (one.here, one.there)))


def _address(text: str) -> str:
    """``0100007F:1F90`` is 127.0.0.1:8080: the address is a word in the machine's byte order."""
    word, port = text.split(":")
    address = ipaddress.IPv4Address(int.from_bytes(bytes.fromhex(word), sys.byteorder))
    return f"{address}:{int(port, 16)}"
