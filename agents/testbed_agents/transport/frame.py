"""Frames of the KV connections, version ``PROTOCOL``: little-endian, bounded, checksummed.

::

    connection  HELLO  ◀ACK   then any number of transfers, one at a time:
    transfer    HEADER(block table)  { CHUNK header │ substance │ padding │ stamp } …  ◀ACK

Decoding raises FrameError and nothing else, whatever the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import xxhash

from testbed.contract.agent import PROTOCOL
from testbed.contract.pool import MOST_STRIPES
from testbed_agents.transport.fault import Fault, FrameError

Bytes: TypeAlias = bytes | bytearray | memoryview

MAX_BLOCKS = 65_536
MAX_BLOCK_SUBSTANCE = 16 * 1024**2
MAX_SUBSTANCE = 512 * 1024**2
"""Substance of one transfer, bytes."""
MAX_WIRE = 2**40
MAX_PARTS = MOST_STRIPES
"""Connections that one transfer goes over at once, or parts that it goes in one by one."""
NAME_BYTES = 16
REASON_BYTES = 88

_PREFIX = struct.Struct("<4sHH")  # magic, version, kind or status
_SUM = struct.Struct("<Q")
_HELLO = struct.Struct(f"<4sHH{NAME_BYTES}s{NAME_BYTES}sIIBB6x")
_HEADER = struct.Struct("<4sHHQIIQII")
_ENTRY = struct.Struct("<I16s")
_CHUNK = struct.Struct("<4sHHQIIQQQ")
_ACK = struct.Struct(f"<4sHHQII{REASON_BYTES}s")

_SEQ_BITS = 20
"""Enough for the chunks of ``MAX_BLOCKS`` blocks; the part stands above them."""

HELLO_BYTES = _HELLO.size + _SUM.size
HEADER_BYTES = _HEADER.size + _SUM.size
CHUNK_BYTES = _CHUNK.size + _SUM.size
ACK_BYTES = _ACK.size + _SUM.size
STAMP_BYTES = 16
DIGEST_BYTES = 16
SUM_BYTES = _SUM.size
ENTRY_BYTES = _ENTRY.size


class Status(IntEnum):
    """What an acknowledgement says."""

    APPLIED = 0
    REFUSED = 1
    BROKEN = 2
    """The frames were wrong; the receiver closes the connection."""
    FULL = 3
    """There are no pages for it now; the receiver closes the connection."""
    ABORTED = 4
    """Nobody wants it any more: the sender stops, and closes the connection."""


@dataclass(frozen=True, slots=True)
class Hello:
    """First frame of a connection: who sends to whom, on which connection of how many."""

    sender: str
    receiver: str
    connection: int
    pool_size: int
    verify_all: bool
    preempt: bool = False
    """Whether a transfer may stand between two chunks of another."""


@dataclass(frozen=True, slots=True)
class Header:
    """Opens a transfer; the block table of ``table_bytes(blocks)`` bytes follows."""

    request: int
    epoch: int
    blocks: int
    wire_bytes: int
    blocks_per_chunk: int
    parts: int = 1
    """Of a transfer in several parts; then a frame ``Part`` follows, before the table."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One block in the table: bytes of substance and their xxh3-128."""

    substance: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Chunk:
    """Opens chunk ``seq``: ``length`` bytes from ``offset`` of the transfer, all included."""

    request: int
    epoch: int
    seq: int
    offset: int
    length: int
    substance: int


@dataclass(frozen=True, slots=True)
class Ack:
    """Answer to a hello (request 0, epoch 0) or to a transfer."""

    status: Status
    request: int
    epoch: int
    reason: str = ""


def digest(data: Bytes) -> bytes:
    """Digest of one block's substance."""
    return xxhash.xxh3_128_digest(data)


def stamp(
    request: int, epoch: int, seq: int, end: int, content: bytes = b"", part: int = 0
) -> bytes:
    """The 16 bytes that close a chunk: they depend on where in which transfer it ends.

    ``content`` is the digest of all the chunk's bytes where every byte is verified.
    """
    place = struct.pack("<QIIQ", request, epoch, part << _SEQ_BITS | seq, end)
    return xxhash.xxh3_128_digest(place + content)


def table_bytes(blocks: int) -> int:
    """Size of a block table with its own digest."""
    return blocks * ENTRY_BYTES + DIGEST_BYTES


def encode_hello(hello: Hello) -> bytes:
    """Raises ValueError where a name does not fit."""
    return sealed(
        _HELLO.pack(
            b"KVHI", PROTOCOL, 0, _name(hello.sender), _name(hello.receiver),
            hello.connection, hello.pool_size, hello.verify_all, hello.preempt,
        )
    )  # fmt: skip


def decode_hello(data: Bytes) -> Hello:
    """Raises FrameError."""
    body = opened(data, b"KVHI", HELLO_BYTES)
    _, _, _, sender, receiver, connection, size, verify_all, preempt = _HELLO.unpack(body)
    return Hello(_text(sender), _text(receiver), connection, size, bool(verify_all), bool(preempt))


def encode_header(header: Header, table: Sequence[Entry], part: bytes = b"") -> bytes:
    """Header, the frame of the part if it is one, and table in one piece.

    Raises FrameError (oversized) beyond the bounds.
    """
    bound("blocks", header.blocks, MAX_BLOCKS)
    bound("wire bytes", header.wire_bytes, MAX_WIRE)
    bound("substance", sum(entry.substance for entry in table), MAX_SUBSTANCE)
    body = sealed(
        _HEADER.pack(
            b"KVTX", PROTOCOL, 0, header.request, header.epoch,
            header.blocks, header.wire_bytes, header.blocks_per_chunk, header.parts - 1,
        )
    ) + part  # fmt: skip
    entries = b"".join(_ENTRY.pack(entry.substance, entry.digest) for entry in table)
    return body + entries + digest(body + entries)


def decode_header(data: Bytes) -> Header:
    """Raises FrameError."""
    body = opened(data, b"KVTX", HEADER_BYTES)
    _, _, _, request, epoch, blocks, wire_bytes, per_chunk, others = _HEADER.unpack(body)
    bound("blocks", blocks, MAX_BLOCKS)
    bound("wire bytes", wire_bytes, MAX_WIRE)
    bound("parts", others + 1, MAX_PARTS)
    if per_chunk < 1:
        raise FrameError(Fault.OVERSIZED, "transfer header", "no blocks in a chunk")
    return Header(request, epoch, blocks, wire_bytes, per_chunk, others + 1)


def opens_transfer(data: Bytes) -> bool:
    """Whether these are the first bytes of a header, not of a chunk."""
    return bytes(data[:4]) == b"KVTX"


def decode_table(header: Bytes, table: Bytes, blocks: int) -> tuple[Entry, ...]:
    """Raises FrameError; ``header`` is all that is encoded before it, which the digest covers."""
    if len(table) != table_bytes(blocks):
        raise FrameError(Fault.TRUNCATED, "block table", f"{len(table)} bytes")
    entries = bytes(table[: blocks * ENTRY_BYTES])
    if digest(bytes(header) + entries) != bytes(table[blocks * ENTRY_BYTES :]):
        raise FrameError(Fault.BAD_DIGEST, "block table", "its digest does not agree")
    decoded = tuple(Entry(size, value) for size, value in _ENTRY.iter_unpack(entries))
    for entry in decoded:
        bound("substance of a block", entry.substance, MAX_BLOCK_SUBSTANCE)
    bound("substance", sum(entry.substance for entry in decoded), MAX_SUBSTANCE)
    return decoded


def encode_chunk(chunk: Chunk) -> bytes:
    """The header of one chunk."""
    return sealed(
        _CHUNK.pack(
            b"KVCK", PROTOCOL, 0, chunk.request, chunk.epoch, chunk.seq,
            chunk.offset, chunk.length, chunk.substance,
        )
    )  # fmt: skip


def decode_chunk(data: Bytes) -> Chunk:
    """Raises FrameError."""
    body = opened(data, b"KVCK", CHUNK_BYTES)
    _, _, _, request, epoch, seq, offset, length, substance = _CHUNK.unpack(body)
    return Chunk(request, epoch, seq, offset, length, substance)


def encode_ack(ack: Ack) -> bytes:
    """A reason longer than the field is cut: it is for people."""
    reason = ack.reason.encode("utf-8")[:REASON_BYTES].decode("utf-8", "ignore").encode("utf-8")
    return sealed(
        _ACK.pack(b"KVAK", PROTOCOL, ack.status, ack.request, ack.epoch, len(reason), reason)
    )


def decode_ack(data: Bytes) -> Ack:
    """Raises FrameError."""
    body = opened(data, b"KVAK", ACK_BYTES)
    _, _, status, request, epoch, length, reason = _ACK.unpack(body)
    if length > REASON_BYTES or status not in tuple(Status):
        raise FrameError(Fault.OVERSIZED, "acknowledgement", "a field is out of range")
    return Ack(Status(status), request, epoch, reason[:length].decode("utf-8", "replace"))


def sealed(body: bytes) -> bytes:
    """A frame with its checksum."""
    return body + _SUM.pack(xxhash.xxh3_64_intdigest(body))


def opened(data: Bytes, magic: bytes, size: int) -> bytes:
    """What is in a frame. Raises FrameError where anything about it is wrong."""
    if len(data) != size:
        raise FrameError(Fault.TRUNCATED, magic.decode(), f"{len(data)} of {size} bytes")
    body = bytes(data[: -_SUM.size])
    seen, version, _ = _PREFIX.unpack_from(body)
    if seen != magic:
        raise FrameError(Fault.BAD_MAGIC, magic.decode(), f"found {seen!r}")
    if version != PROTOCOL:
        raise FrameError(Fault.BAD_VERSION, magic.decode(), f"{version}, ours is {PROTOCOL}")
    if _SUM.unpack(data[-_SUM.size :])[0] != xxhash.xxh3_64_intdigest(body):
        raise FrameError(Fault.BAD_CHECKSUM, magic.decode(), "the checksum does not agree")
    return body


def bound(name: str, value: int, most: int) -> None:
    """Raises FrameError (oversized) above ``most``."""
    if value > most:
        raise FrameError(Fault.OVERSIZED, name, f"{value}, at most {most} are allowed")


def _name(text: str) -> bytes:
    encoded = text.encode("ascii")
    if not 0 < len(encoded) <= NAME_BYTES:
        raise ValueError(f"a node name has 1 to {NAME_BYTES} bytes: {text!r}")
    return encoded


def _text(field: bytes) -> str:
    return field.rstrip(b"\0").decode("ascii", "replace")
