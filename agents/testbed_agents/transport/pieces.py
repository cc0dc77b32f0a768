"""The sending half of the protocol, pure: a transfer as a row of pieces to write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import xxhash

from testbed_agents.transport import frame, padding
from testbed_agents.transport.layout import ChunkPlan, Layout, blocks_per_chunk, lay_out
from testbed_agents.transport.part import PART_BYTES, Part, encode_part, shares
from testbed_agents.transport.transfer import OutgoingTransfer


@dataclass(frozen=True, slots=True)
class Pad:
    """``count`` bytes that the kernel may take from the padding file."""

    count: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Between two chunks: nothing to write, but another transfer may come here."""

    left_bytes: int
    """What of the transfer follows."""


Piece: TypeAlias = frame.Bytes | Pad | Gap


class Parcel:
    """A transfer, or a part of one, laid out and digested, ready to be written once.

    ``part`` says which, and is told the bytes of the whole last: see ``parcels_of``. Raises
    FrameError (oversized) where it exceeds the protocol's bounds.
    """

    def __init__(
        self,
        transfer: OutgoingTransfer,
        chunk_bytes: int,
        verify_all: bool,
        part: Part | None = None,
    ) -> None:
        self._transfer = transfer
        self._number = 0 if part is None else part.number
        self._verify_all = verify_all
        self._blocks = [memoryview(block).cast("B") for block in transfer.blocks]
        sizes = [block.nbytes for block in self._blocks]
        table = [frame.Entry(block.nbytes, frame.digest(block)) for block in self._blocks]
        per_chunk = blocks_per_chunk(len(sizes), transfer.wire_bytes, chunk_bytes)
        extra = 0 if part is None else PART_BYTES
        self.layout: Layout = lay_out(sizes, transfer.wire_bytes, per_chunk, extra)
        self._skipped: int | None = None
        self._opening = frame.encode_header(
            frame.Header(
                transfer.request, transfer.epoch, len(sizes), self.layout.wire_bytes, per_chunk,
                1 if part is None else part.of,
            ),
            table,
            b"" if part is None else encode_part(part),
        )  # fmt: skip

    @property
    def blocks(self) -> int:
        """How many it carries."""
        return len(self._blocks)

    def skip(self, seq: int | None) -> bool:
        """Never send a chunk, None the last; False where there is no such chunk."""
        number = len(self.layout.chunks) - 1 if seq is None else seq
        found = number < len(self.layout.chunks)
        if found:
            self._skipped = number
        return found

    def replace(self, blocks: Sequence[frame.Bytes]) -> None:
        """Send these in place of the blocks that were digested; sizes that differ become zeros."""
        given = [memoryview(block).cast("B") for block in blocks]
        for index, block in enumerate(self._blocks):
            fits = index < len(given) and given[index].nbytes == block.nbytes
            other = (
                given[index] if fits and given[index] != block else memoryview(bytes(len(block)))
            )
            self._blocks[index] = other

    def pieces(self, gaps: bool = False) -> Iterator[Piece]:
        """Every byte of the transfer in order; stamps ride with the next chunk's header.

        With ``gaps`` they close their chunk, and a gap follows unless it is the last.
        """
        pending = self._opening
        for plan in self.layout.chunks:
            if plan.seq == self._skipped:
                continue
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
                self._transfer.request, self._transfer.epoch, plan.seq, plan.end, seen, self._number
            )
            if gaps and plan is not self.layout.chunks[-1]:
                yield pending
                pending = b""
                yield Gap(self.layout.wire_bytes - plan.end)
        yield pending

    def _header(self, plan: ChunkPlan) -> bytes:
        return frame.encode_chunk(
            frame.Chunk(
                self._transfer.request, self._transfer.epoch, plan.seq,
                plan.offset, plan.length, plan.substance,
            )
        )  # fmt: skip


def parcels_of(
    transfer: OutgoingTransfer,
    chunk_bytes: int,
    verify_all: bool,
    count: int,
    in_turn: bool = False,
) -> tuple[Parcel, ...]:
    """``transfer`` in ``count`` parts for as many connections, or one by one for one.

    1 leaves it in one piece.
    """
    if count == 1:
        return (Parcel(transfer, chunk_bytes, verify_all),)
    cut = shares(transfer, count)

    def parts(wire_bytes: int) -> tuple[Parcel, ...]:
        return tuple(
            Parcel(
                one, chunk_bytes, verify_all,
                Part(
                    one.request, number, count, first, len(transfer.blocks), wire_bytes, in_turn
                ),
            )
            for number, (first, one) in enumerate(cut)
        )  # fmt: skip

    # a part that its frames alone exceed is raised: the whole is known once all are laid out
    return parts(sum(parcel.layout.wire_bytes for parcel in parts(0)))
