"""Probe frames: an Ethernet address nobody has, a type nobody speaks, a numbered payload.

The address makes the receiving stack drop the frame after the packet socket saw it, so
that no probe ever causes an answer. A superframe is one TCP skb of up to 64 KiB that
the devices would segment (virtio_net_hdr in front of it, see packet(7)).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from zlib import crc32

ETHERNET = 14
NOBODY = bytes.fromhex("02fffffffffe")
SENDER = bytes.fromhex("02fffffffffd")
PROBE_TYPE = 0x88B5
"""IEEE 802 local experimental EtherType 1."""
IPV4_TYPE = 0x0800
MARK = struct.Struct("=8sIII")
"""Magic, run, sequence number and their CRC32: the first bytes of the payload."""
MAGIC = b"pddprobe"
HEADERS = ETHERNET + 20 + 20
_VIRTIO = struct.Struct("=BBHHHH")
_NEEDS_CSUM, _GSO_TCPV4 = 1, 1


@dataclass(frozen=True, slots=True)
class Template:
    """Bytes to send, where the mark goes, and what the shaper counts for it.

    Attributes:
        wire_bytes: length as qdiscs see it; a superframe counts the headers of every
            segment (net/core/dev.c, qdisc_pkt_len_init).
        mark_at: offset of MARK in what a receiver gets.
        prefix: length of the virtio header, which the receiver does not get.
    """

    data: bytes
    wire_bytes: int
    mark_at: int
    prefix: int = 0


def write_mark(frame: bytearray, at: int, run: int, number: int) -> None:
    """Number one frame."""
    MARK.pack_into(frame, at, MAGIC, run, number, _check(run, number))


def read_mark(data: bytes, at: int) -> tuple[int, int] | None:
    """(run, number) of a frame; None where it is no probe, or a damaged one."""
    if len(data) < at + MARK.size:
        return None
    magic, run, number, check = MARK.unpack_from(data, at)
    if magic != MAGIC or check != _check(run, number):
        return None
    return run, number


def _check(run: int, number: int) -> int:
    return crc32(struct.pack("=II", run, number))


def plain(frame_bytes: int) -> Template:
    """One frame of ``frame_bytes`` including its Ethernet header."""
    head = NOBODY + SENDER + struct.pack("!H", PROBE_TYPE)
    size = max(frame_bytes, ETHERNET + MARK.size)
    return Template(head + bytes(size - ETHERNET), size, ETHERNET)


def superframe(limit: int, mtu: int) -> Template:
    """One TCP skb shorter than ``limit`` (a device's gso_max_size) for frames of ``mtu``.

    A device segments what is not shorter (net/core/dev.c, gso_features_check).
    """
    segment = mtu - 40
    total = limit - 1 - ETHERNET
    segments = -(-(total - 40) // segment)
    virtio = _VIRTIO.pack(_NEEDS_CSUM, _GSO_TCPV4, HEADERS, segment, ETHERNET + 20, 16)
    head = NOBODY + SENDER + struct.pack("!H", IPV4_TYPE)
    ip = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, total, 0, 0x4000, 64, 6, 0, b"\x0a\0\0\1", b"\x0a\0\0\2"
    )
    tcp = struct.pack("!HHIIBBHHH", 9, 9, 0, 0, 0x50, 0x10, 0, 0, 0)
    data = virtio + head + ip + tcp + bytes(total - 40)
    wire = ETHERNET + total + (segments - 1) * HEADERS
    return Template(data, wire, HEADERS, _VIRTIO.size)
