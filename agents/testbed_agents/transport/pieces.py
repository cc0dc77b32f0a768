"""The sending half of the protocol, pure: a transfer as a row of pieces to write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import xxhash

from testbed_agents.transport import frame, padding
from testbed_agents.transport.layout import ChunkPlan, Layout, blocks_per_chunk, lay_out
from testbed_agents.transport.transfer import OutgoingTransfer


@dataclass(frozen=True, slots=True)
class Pad:
    """``count`` bytes that the kernel may take from the padding file."""

    count: int


Piece: TypeAlias = frame.Bytes | Pad


class Parcel:
    """A transfer laid out and digested, ready to be written once.

    Raises FrameError (oversized) where it exceeds the protocol's bounds.
    """

    def __init__(self, transfer: OutgoingTransfer, chunk_bytes: int, verify_all: bool) -> None:
        self._transfer = transfer
        self._verify_all = verify_all
        self._blocks = [memoryview(block).cast("B") for block in transfer.blocks]
        sizes = [block.nbytes for block in self._blocks]
        table = [frame.Entry(block.nbytes, frame.digest(block)) for block in self._blocks]
        per_chunk = blocks_per_chunk(len(sizes), transfer.wire_bytes, chunk_bytes)
        self.layout: Layout = lay_out(sizes, transfer.wire_bytes, per_chunk)
        self._opening = frame.encode_header(
            frame.Header(
                transfer.request, transfer.epoch, len(sizes), self.layout.wire_bytes, per_chunk
            ),
            table,
        )

    def pieces(self) -> Iterator[Piece]:
        """Every byte of the transfer in order; stamps ride with the next chunk's header."""
        pending = self._opening
        for plan in self.layout.chunks:
            content = b"".join((self._header(plan), *self._blocks[plan.first : plan.last]))
            yield pending + content
            seen = b""
            if self._verify_all:
                hasher = xxhash.xxh3_128(content)
                offset = plan.offset + len(content)
                while offset < plan.end - frame.STAMP_BYTES:
                    count = min(plan.end - frame.STAMP_BYTES - offset, padding.PIECE)
                    piece = padding.stream(self._transfer.request, offset, count)
                    hasher.update(piece)
                    offset += count
                    yield piece
                seen = hasher.digest()
            elif plan.padding:
                yield Pad(plan.padding)
            pending = frame.stamp(
                self._transfer.request, self._transfer.epoch, plan.seq, plan.end, seen
            )
        yield pending

    def _header(self, plan: ChunkPlan) -> bytes:
        return frame.encode_chunk(
            frame.Chunk(
                self._transfer.request, self._transfer.epoch, plan.seq,
                plan.offset, plan.length, plan.substance,
            )
        )  # fmt: skip
