"""Sockets of the data path: made, tuned, and what was asked for read back."""

from __future__ import annotations

import contextlib
import socket
import struct
from pathlib import Path

from testbed.contract.agent import Tcp
from testbed.errors import AgentError

_SO_SNDBUFFORCE = 32  # <asm-generic/socket.h>: beyond net.core.wmem_max, for CAP_NET_ADMIN
_SO_RCVBUFFORCE = 33
_IP_BIND_ADDRESS_NO_PORT = 24  # <linux/in.h>
_IP_LOCAL_PORT_RANGE = 51  # since Linux 6.3
_SYSCTLS = Path("/proc/sys/net/ipv4")
_RESET = struct.pack("ii", 1, 0)  # linger 0: close() resets instead of TIME_WAIT


def tuned_socket(tcp: Tcp) -> socket.socket:
    """A non-blocking TCP socket with the scenario's options, all read back.

    The kernel doubles buffer sizes for its own bookkeeping (socket(7)). Where it does not grant
    them, because we lack CAP_NET_ADMIN and net.core.*mem_max are small, it has to be ready to tune
    them up to that size by itself.

    Raises:
        AgentError: it grants less than was asked for, and would not tune as far as that.
    """
    connection = _opened(tcp)
    try:
        if not _set_buffers(connection, tcp):
            connection.close()  # a buffer that was set is never tuned again
            connection = _opened(tcp)
            _require_tuning("tcp_wmem", tcp.send_buffer)
            _require_tuning("tcp_rmem", tcp.receive_buffer)
    except OSError as error:
        connection.close()
        raise _refused("buffers", tcp.congestion, str(error)) from error
    except AgentError:
        connection.close()
        raise
    return connection


def _opened(tcp: Tcp) -> socket.socket:
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
    except OSError as error:
        connection.close()
        raise _refused("congestion control", tcp.congestion, str(error)) from error
    except AgentError:
        connection.close()
        raise
    return connection


def bind_late(connection: socket.socket, source: tuple[str, int]) -> None:
    """Let connect() take the source port, and name that one port to it.

    A port that was bound is taken over from TIME_WAIT (Linux, tcp_twsk_unique() without ``twp``);
    one that connect() looks for is not, and it is there that programs run out of ports. The
    port must lie within net.ipv4.ip_local_port_range, or the kernel ignores the wish.
    """
    address, port = source
    connection.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
    connection.setsockopt(
        socket.IPPROTO_IP, _IP_LOCAL_PORT_RANGE, struct.pack("=I", port << 16 | port)
    )
    connection.bind((address, 0))


def require_port_choice() -> None:
    """Raises AgentError where this kernel does not let a socket choose its port in connect()."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.getsockopt(socket.IPPROTO_IP, _IP_LOCAL_PORT_RANGE)
    except OSError as error:
        raise AgentError(
            "open connections on demand", "IP_LOCAL_PORT_RANGE", str(error),
            "use Linux 6.3 or later, or pool.discipline fifo or lanes",
        ) from error  # fmt: skip


def require_source(connection: socket.socket, source: tuple[str, int]) -> None:
    """Raises AgentError where a connection did not get the source that it wanted."""
    got = connection.getsockname()
    if got != source:
        raise AgentError(
            "choose a source port", f"{source[0]}:{source[1]}", f"got {got[0]}:{got[1]}",
            "keep pool.source_port within net.ipv4.ip_local_port_range",
        )  # fmt: skip


def reset(connection: socket.socket) -> None:
    """Close at once with a reset: for connections whose stream can no longer be trusted."""
    with contextlib.suppress(OSError):  # already gone; closing is all that is left
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    connection.close()


def _set_buffers(connection: socket.socket, tcp: Tcp) -> bool:
    """Whether both were granted."""
    sends = _set_buffer(connection, _SO_SNDBUFFORCE, socket.SO_SNDBUF, tcp.send_buffer)
    return sends and _set_buffer(connection, _SO_RCVBUFFORCE, socket.SO_RCVBUF, tcp.receive_buffer)


def _set_buffer(connection: socket.socket, force: int, plain: int, size: int) -> bool:
    try:
        connection.setsockopt(socket.SOL_SOCKET, force, size)
    except PermissionError:
        connection.setsockopt(socket.SOL_SOCKET, plain, size)
    return connection.getsockopt(socket.SOL_SOCKET, plain) >= 2 * size


def _require_tuning(name: str, size: int) -> None:
    """Raises AgentError where the kernel would not tune a buffer as far as ``size``."""
    largest = int((_SYSCTLS / name).read_text(encoding="ascii").split()[2])
    if largest < size:
        raise _refused("socket buffer", f"{size} bytes", f"net.ipv4.{name} ends at {largest}")


def _refused(what: str, wanted: str, cause: str) -> AgentError:
    return AgentError(
        f"set {what}", wanted, cause, "raise net.core.wmem_max and rmem_max, or ask for less"
    )
