"""Ends established TCP connections from outside, through the kernel's socket inspection.

The kernel aborts the socket (ECONNABORTED) and sends its peer an RST that fits, whether or not
anything is under way: SOCK_DESTROY of NETLINK_SOCK_DIAG, which ``ss --kill`` uses as well (needs
CONFIG_INET_DIAG_DESTROY). A forged RST would need a packet to copy its numbers from, and by the
time that it arrives a receiver that got more takes it for an attack (RFC 5961, challenge ACK).
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address

from testbed.errors import LabError
from testbed.lab.namespace import entered

_SOCK_DIAG = 4
"""NETLINK_SOCK_DIAG."""
_BY_FAMILY, _DESTROY = 20, 21
_REQUEST, _ACK, _DUMP = 0x1, 0x4, 0x300
_ERROR, _DONE = 2, 3
_HEADER = struct.Struct("=IHHII")
_ASK = struct.Struct("=BBBBI")
"""family, protocol, extensions, pad, states of struct inet_diag_req_v2; a socket's id follows."""
_ID = struct.Struct("!HH4s12x4s12x")
_ID_BYTES, _ID_AT = 48, 4
"""struct inet_diag_sockid, with device and cookie; behind family, state, timer, retransmissions."""
_ESTABLISHED = 1 << 1
_RECEIVE_BYTES = 1 << 18


@dataclass(frozen=True, slots=True, order=True)
class Connection:
    """An established connection, as its own end sees it."""

    port: int
    peer: str
    peer_port: int
    identity: bytes
    """By which the kernel finds this very socket again."""

    def fits(self, peer: str | None, port: int | None) -> bool:
        """Whether it is with this address and has this port at either end; None fits all."""
        return peer in (None, self.peer) and port in (None, self.port, self.peer_port)


def reset_connections(path: str, peer: str | None, port: int | None) -> int:
    """Destroys what fits in the network namespace at ``path``, in the order of ports.

    Returns:
        How many there were.

    Raises:
        LabError: the kernel cannot (EOPNOTSUPP: it lacks CONFIG_INET_DIAG_DESTROY), or refuses.
    """
    with entered(path):
        talk = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)
    with talk:
        talk.bind((0, 0))
        chosen = sorted(one for one in established(talk) if one.fits(peer, port))
        return sum(_destroy(talk, one) for one in chosen)


def can_destroy() -> bool:
    """Whether this kernel would, asked for a connection that cannot be; as root it knows best."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as talk:
        talk.bind((0, 0))
        try:
            return not _destroy(talk, Connection(0, "0.0.0.0", 0, bytes(_ID_BYTES)))
        except LabError:
            return False


def established(talk: socket.socket) -> Iterator[Connection]:
    """Every established IPv4 connection of the socket's namespace."""
    ask = _ASK.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ESTABLISHED) + bytes(_ID_BYTES)
    talk.send(_message(_BY_FAMILY, _REQUEST | _DUMP, ask))
    while True:
        data = talk.recv(_RECEIVE_BYTES)
        for kind, body in _messages(data):
            if kind == _DONE:
                return
            if kind == _ERROR:
                raise _refusal("list connections", struct.unpack_from("=i", body)[0])
            identity = body[_ID_AT : _ID_AT + _ID_BYTES]
            port, peer_port, _, peer = _ID.unpack_from(identity)
            yield Connection(port, str(IPv4Address(peer)), peer_port, identity)


def _destroy(talk: socket.socket, one: Connection) -> bool:
    """False where it ended by itself just now."""
    ask = _ASK.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ESTABLISHED) + one.identity
    talk.send(_message(_DESTROY, _REQUEST | _ACK, ask))
    for _, body in _messages(talk.recv(_RECEIVE_BYTES)):
        code: int = struct.unpack_from("=i", body)[0]
        if code and code != -errno.ENOENT:
            raise _refusal(f"reset the connection {one.port} to {one.peer}:{one.peer_port}", code)
        return code == 0
    return False


def _refusal(attempt: str, code: int) -> LabError:
    remedy = "boot a kernel with CONFIG_INET_DIAG_DESTROY" if -code == errno.EOPNOTSUPP else ""
    return LabError(attempt, "sock_diag", os.strerror(-code), remedy)


def _message(kind: int, flags: int, body: bytes) -> bytes:
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, offset)
        yield kind, data[offset + _HEADER.size : offset + length]
        offset += length + (-length % 4)
