"""Sockets of the data path: made, tuned, and what was asked for read back."""

from __future__ import annotations

import contextlib
import socket
import struct

from testbed.contract.agent import Tcp
from testbed.errors import AgentError

_SO_SNDBUFFORCE = 32  # <asm-generic/socket.h>: beyond net.core.wmem_max, for CAP_NET_ADMIN
_SO_RCVBUFFORCE = 33
_RESET = struct.pack("ii", 1, 0)  # linger 0: close() resets instead of TIME_WAIT


def tuned_socket(tcp: Tcp) -> socket.socket:
    """A non-blocking TCP socket with the scenario's options, all read back.

    The kernel doubles buffer sizes for its own bookkeeping (socket(7)). Raises
    AgentError where it grants less than was asked for.
    """
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        connection.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_CONGESTION, tcp.congestion.encode("ascii")
        )
        got = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        if got.rstrip(b"\0").decode("ascii") != tcp.congestion:
            raise _refused("congestion control", tcp.congestion, repr(got))
        _set_buffer(connection, _SO_SNDBUFFORCE, socket.SO_SNDBUF, tcp.send_buffer)
        _set_buffer(connection, _SO_RCVBUFFORCE, socket.SO_RCVBUF, tcp.receive_buffer)
    except OSError as error:
        connection.close()
        raise _refused("congestion control or buffers", tcp.congestion, str(error)) from error
    except AgentError:
        connection.close()
        raise
    return connection


def reset(connection: socket.socket) -> None:
    """Close at once with a reset: for connections whose stream can no longer be trusted."""
    with contextlib.suppress(OSError):  # already gone; closing is all that is left
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    connection.close()


def _set_buffer(connection: socket.socket, force: int, plain: int, size: int) -> None:
    try:
        connection.setsockopt(socket.SOL_SOCKET, force, size)
    except PermissionError:
        connection.setsockopt(socket.SOL_SOCKET, plain, size)
    got = connection.getsockopt(socket.SOL_SOCKET, plain)
    if got < 2 * size:
        raise _refused("socket buffer", f"{size} bytes", f"the kernel gave {got // 2}")


def _refused(what: str, wanted: str, cause: str) -> AgentError:
    return AgentError(
        f"set {what}", wanted, cause, "raise net.core.wmem_max and rmem_max, or ask for less"
    )
