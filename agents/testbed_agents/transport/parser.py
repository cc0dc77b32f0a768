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
from testbed_agents.transport.layout import ChunkPlan, Layout, lay_out
from testbed_agents.transport.part import PART_BYTES, Part, decode_part
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
    """A transfer, or a part of one, has been announced and admitted."""

    header: frame.Header
    part: Part | None


@dataclass(frozen=True, slots=True)
class Complete:
    """All bytes have arrived and agree; nothing may follow before the acknowledgement."""

    transfer: IncomingTransfer
    part: Part | None


@dataclass(frozen=True, slots=True)
class Landed:
    """A chunk's blocks, from number ``first`` of the transfer or of its part on."""

    header: frame.Header
    part: Part | None
    first: int
    blocks: tuple[memoryview, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """What is looked at, and told of. A rule that is off lets pass what it would refuse."""

    digests: bool = True
    counts: bool = True
    lands: bool = False
    """Whether every chunk is told of (``Landed``)."""


STRICT = Rules()

Step: TypeAlias = Read | Skip | Begun | Landed | Complete
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


def read_transfers(hello: frame.Hello, epochs: Epochs, rules: Rules = STRICT) -> Parser:
    """All transfers of a connection, one after another, for ever."""
    while True:
        yield from _read_transfer(hello, epochs, rules)


def _read_transfer(hello: frame.Hello, epochs: Epochs, rules: Rules) -> Parser:
    opening = yield Read(frame.HEADER_BYTES, frame.HEADER_BYTES)
    yield from _read_from(bytes(opening), hello, epochs, rules, hello.preempt)


def _read_from(
    opening: bytes, hello: frame.Hello, epochs: Epochs, rules: Rules, gaps: bool
) -> Parser:
    """A transfer behind its header; with ``gaps`` others may stand between two chunks of it."""
    header = frame.decode_header(opening)
    before, part = opening, None
    if header.parts > 1:
        more = yield Read(PART_BYTES, PART_BYTES)
        part = decode_part(more, header)
        before += bytes(more)
    number = 0 if part is None else part.number
    epochs.admit(header.request, header.epoch, number, header.parts)
    yield Begun(header, part)
    table_bytes = frame.table_bytes(header.blocks)
    ahead = max(table_bytes, header.wire_bytes - len(before))
    table = frame.decode_table(before, (yield Read(table_bytes, ahead)), header.blocks)
    layout = lay_out(
        [entry.substance for entry in table], header.wire_bytes, header.blocks_per_chunk,
        len(before) - frame.HEADER_BYTES,
    )  # fmt: skip
    if layout.wire_bytes != header.wire_bytes:
        raise FrameError(
            Fault.TRUNCATED, f"request {header.request}",
            f"{header.wire_bytes} wire bytes cannot hold its blocks",
        )  # fmt: skip
    blocks: list[memoryview] = []
    closing = b""
    unequal = missing = following = 0
    for plan in layout.chunks:
        if plan.seq < following:
            continue  # it was left out
        first = len(closing)
        # more than this chunk may be far away, behind another transfer
        behind = 0 if gaps else header.wire_bytes - plan.end
        start = b""
        if gaps and plan.seq:
            start = yield from _read_start(hello, epochs, rules)
        piece = yield Read(
            first + frame.CHUNK_BYTES + plan.substance - len(start),
            plan.length + behind + first - len(start),
        )
        _check_stamp(bytes(piece[:first]), closing, plan.seq)
        content = piece[first:] if not start else memoryview(start + bytes(piece))
        chunk = frame.decode_chunk(content[: frame.CHUNK_BYTES])
        if not rules.counts:
            came = _chunk_that_came(chunk, plan, layout)
            lacked = [memoryview(bytes(one.substance)) for one in table[plan.first : came.first]]
            blocks += lacked
            missing += len(lacked)
            plan, following = came, came.seq + 1
            behind = 0 if gaps else header.wire_bytes - plan.end
        _check_chunk(chunk, plan, header)
        arrived, wrong = _cut(
            content[frame.CHUNK_BYTES :], table[plan.first : plan.last], header, rules.digests
        )
        blocks += arrived
        unequal += wrong
        if rules.lands:
            yield Landed(header, part, plan.first, tuple(arrived))
        left = behind + plan.padding + frame.STAMP_BYTES
        if hello.verify_all:
            seen = yield from _read_padding(header, plan, content, left)
        else:
            seen = b""
            if plan.padding:
                yield Skip(plan.padding, left)
        closing = frame.stamp(header.request, header.epoch, plan.seq, plan.end, seen, number)
        if gaps and plan is not layout.chunks[-1]:
            ended = yield Read(frame.STAMP_BYTES, frame.STAMP_BYTES)
            _check_stamp(bytes(ended), closing, plan.seq + 1)
            closing = b""
    last = yield Read(frame.STAMP_BYTES, frame.STAMP_BYTES)
    _check_stamp(bytes(last), closing, len(layout.chunks))
    yield Complete(
        IncomingTransfer(
            header.request, header.epoch, tuple(blocks),
            header.wire_bytes, hello.sender, hello.connection, unequal, missing,
        ),
        part,
    )  # fmt: skip


def _chunk_that_came(chunk: frame.Chunk, plan: ChunkPlan, layout: Layout) -> ChunkPlan:
    """The plan of a chunk, where some before it may have been left out."""
    if plan.seq < chunk.seq < len(layout.chunks):
        came = layout.chunks[chunk.seq]
        if came.substance == plan.substance:
            return came
    return plan


def _read_start(
    hello: frame.Hello, epochs: Epochs, rules: Rules
) -> Generator[Step, memoryview, bytes]:
    """The first bytes of the next chunk; whole transfers may come before it."""
    while True:
        start = bytes((yield Read(frame.HEADER_BYTES, frame.HEADER_BYTES)))
        if not frame.opens_transfer(start):
            return start
        yield from _read_from(start, hello, epochs, rules, gaps=False)


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
    if (chunk.request, chunk.epoch) == (header.request, header.epoch) and chunk.seq > plan.seq:
        raise FrameError(
            Fault.OUT_OF_ORDER, f"request {header.request}",
            f"chunk {plan.seq} is missing: chunk {chunk.seq} came",
        )  # fmt: skip
    if chunk != wanted:
        raise FrameError(Fault.OUT_OF_ORDER, f"request {header.request}", f"{chunk} for {wanted}")


def _cut(
    substance: memoryview, entries: tuple[frame.Entry, ...], header: frame.Header, checked: bool
) -> tuple[list[memoryview], int]:
    """The blocks, and how many of them are not what was sent, where that is let pass."""
    blocks: list[memoryview] = []
    offset = unequal = 0
    for entry in entries:
        block = substance[offset : offset + entry.substance]
        if frame.digest(block) != entry.digest:
            if checked:
                raise FrameError(
                    Fault.BAD_DIGEST, f"request {header.request}", "a block is not what was sent"
                )
            unequal += 1
        blocks.append(block)
        offset += entry.substance
    return blocks, unequal
