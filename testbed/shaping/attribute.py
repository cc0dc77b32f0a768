"""Netlink attributes: (length, type, payload) triples padded to four bytes.

The layout is ``struct nlattr`` of the kernel's include/uapi/linux/netlink.h. Numbers
inside tc attributes are in host byte order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from testbed.errors import FidelityError

NESTED = 0x8000
"""NLA_F_NESTED; the kernel's tc code neither needs nor sets it, but others may."""
TYPE_MASK = 0x3FFF
_HEADER = struct.Struct("=HH")


def attribute(kind: int, payload: bytes) -> bytes:
    """One attribute with its header and padding."""
    length = _HEADER.size + len(payload)
    if length > 0xFFFF:
        raise FidelityError(
            "encode netlink attribute", str(kind), f"{length} bytes do not fit a 16-bit length"
        )
    return _HEADER.pack(length, kind) + payload + bytes(-length % 4)


def nested(kind: int, *parts: bytes) -> bytes:
    """An attribute that holds attributes."""
    return attribute(kind, b"".join(parts))


def u32(kind: int, value: int) -> bytes:
    """A 32-bit attribute."""
    return attribute(kind, struct.pack("=I", value))


def u64(kind: int, value: int) -> bytes:
    """A 64-bit attribute."""
    return attribute(kind, struct.pack("=Q", value))


def s64(kind: int, value: int) -> bytes:
    """A signed 64-bit attribute."""
    return attribute(kind, struct.pack("=q", value))


def text(kind: int, value: str) -> bytes:
    """A zero-terminated string."""
    return attribute(kind, value.encode("ascii") + b"\0")


def attributes(data: bytes, offset: int = 0) -> Iterator[tuple[int, bytes]]:
    """(type, payload) of every attribute; a length that leaves the buffer is an error."""
    while offset + _HEADER.size <= len(data):
        length, kind = _HEADER.unpack_from(data, offset)
        if length < _HEADER.size or offset + length > len(data):
            raise FidelityError(
                "decode netlink attributes",
                f"offset {offset}",
                f"length {length} leaves a buffer of {len(data)} bytes",
            )
        yield kind & TYPE_MASK, data[offset + _HEADER.size : offset + length]
        offset += length + (-length % 4)


def table(data: bytes, offset: int = 0) -> dict[int, bytes]:
    """The attributes as a mapping; the last of several of one type wins, as in the kernel."""
    return dict(attributes(data, offset))
