"""The receiving half of the protocol, pure: it asks for bytes and is given them.

A generator yields what it needs next (``Read``, ``Skip``) or what has happened
(``Begun``, ``Complete``) and is sent the bytes of a ``Read``, or an empty view.
It raises FrameError at the first byte that the protocol does not allow.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias

import xxhash

from testbed_agents.transport import frame, padding
from testbed_agents.transport.epochs import Epochs
from testbed_agents.transport.fault import Fault, FrameError
from testbed_agents.transport.layout import ChunkPlan, lay_out
from testbed_agents.transport.transfer import IncomingTransfer


@dataclass(frozen=True, slots=True)
class Read:
    """Exactly ``count`` bytes; ``ahead`` bytes, these included, are known to follow."""

    count: int
    ahead: int


@dataclass(frozen=True, slots=True)
class Skip:
    """Drop exactly ``count`` bytes unseen; ``ahead`` as in Read."""

    count: int
    ahead: int


@dataclass(frozen=True, slots=True)
class Begun:
    """A transfer has been announced and admitted."""

    header: frame.Header


@dataclass(frozen=True, slots=True)
class Complete:
    """All bytes have arrived and agree; nothing may follow before the acknowledgement."""

    transfer: IncomingTransfer


Step: TypeAlias = Read | Skip | Begun | Complete
Parser: TypeAlias = Generator[Step, memoryview, None]


def read_hello(receiver: str, verify_all: bool) -> Generator[Step, memoryview, frame.Hello]:
    """The first frame of a connection, checked against who we are."""
    hello = frame.decode_hello((yield Read(frame.HELLO_BYTES, frame.HELLO_BYTES)))
    if hello.receiver != receiver:
        raise FrameError(Fault.BAD_HELLO, hello.sender, f"calls {hello.receiver}, not {receiver}")
    if hello.verify_all is not verify_all:
        raise FrameError(Fault.BAD_HELLO, hello.sender, "the ends verify differently")
    if hello.connection >= hello.pool_size:
        raise FrameError(Fault.BAD_HELLO, hello.sender, f"connection {hello.connection}")
    return hello


def read_transfers(hello: frame.Hello, epochs: Epochs) -> Parser:
    """All transfers of a connection, one after another, for ever."""
    while True:
        yield from _read_transfer(hello, epochs)


def _read_transfer(hello: frame.Hello, epochs: Epochs) -> Parser:
    opening = yield Read(frame.HEADER_BYTES, frame.HEADER_BYTES)
    header = frame.decode_header(opening)
    epochs.admit(header.request, header.epoch)
    yield Begun(header)
    table_bytes = frame.table_bytes(header.blocks)
    ahead = max(table_bytes, header.wire_bytes - frame.HEADER_BYTES)
    table = frame.decode_table(opening, (yield Read(table_bytes, ahead)), header.blocks)
    layout = lay_out(
        [entry.substance for entry in table], header.wire_bytes, header.blocks_per_chunk
    )
    if layout.wire_bytes != header.wire_bytes:
        raise FrameError(
            Fault.TRUNCATED, f"request {header.request}",
            f"{header.wire_bytes} wire bytes cannot hold its blocks",
        )  # fmt: skip
    blocks: list[memoryview] = []
    closing = b""
    for plan in layout.chunks:
        first = len(closing)
        piece = yield Read(
            first + frame.CHUNK_BYTES + plan.substance, header.wire_bytes - plan.offset + first
        )
        _check_stamp(bytes(piece[:first]), closing, plan.seq)
        content = piece[first:]
        _check_chunk(frame.decode_chunk(content[: frame.CHUNK_BYTES]), plan, header)
        blocks += _cut(content[frame.CHUNK_BYTES :], table[plan.first : plan.last], header)
        left = header.wire_bytes - plan.end + plan.padding + frame.STAMP_BYTES
        if hello.verify_all:
            seen = yield from _read_padding(header, plan, content, left)
        else:
            seen = b""
            if plan.padding:
                yield Skip(plan.padding, left)
        closing = frame.stamp(header.request, header.epoch, plan.seq, plan.end, seen)
    last = yield Read(frame.STAMP_BYTES, frame.STAMP_BYTES)
    _check_stamp(bytes(last), closing, len(layout.chunks))
    yield Complete(
        IncomingTransfer(
            header.request, header.epoch, tuple(blocks),
            header.wire_bytes, hello.sender, hello.connection,
        )
    )  # fmt: skip


def _read_padding(
    header: frame.Header, plan: ChunkPlan, content: memoryview, ahead: int
) -> Generator[Step, memoryview, bytes]:
    """Digest of every byte of the chunk, its padding compared with what it must be."""
    hasher = xxhash.xxh3_128(content)
    offset = plan.offset + len(content)
    left = plan.padding
    while left:
        count = min(left, padding.PIECE)
        piece = yield Read(count, ahead)
        if piece != padding.stream(header.request, offset, count):
            raise FrameError(
                Fault.BAD_DIGEST, f"request {header.request}", f"padding near byte {offset}"
            )
        hasher.update(piece)
        offset += count
        left -= count
        ahead -= count
    return hasher.digest()


def _check_stamp(seen: bytes, wanted: bytes, seq: int) -> None:
    if seen != wanted:
        raise FrameError(Fault.BAD_STAMP, f"chunk {seq - 1}", "its closing stamp does not agree")


def _check_chunk(chunk: frame.Chunk, plan: ChunkPlan, header: frame.Header) -> None:
    wanted = frame.Chunk(
        header.request, header.epoch, plan.seq, plan.offset, plan.length, plan.substance
    )
    if chunk != wanted:
        raise FrameError(Fault.OUT_OF_ORDER, f"request {header.request}", f"{chunk} for {wanted}")


def _cut(
    substance: memoryview, entries: tuple[frame.Entry, ...], header: frame.Header
) -> list[memoryview]:
    blocks: list[memoryview] = []
    offset = 0
    for entry in entries:
        block = substance[offset : offset + entry.substance]
        if frame.digest(block) != entry.digest:
            raise FrameError(
                Fault.BAD_DIGEST, f"request {header.request}", "a block is not what was sent"
            )
        blocks.append(block)
        offset += entry.substance
    return blocks
