"""Where every byte of a transfer lies: a pure function that both ends compute alike.

::

    0 ─ header + table ─┬─ chunk 0 ─────────────────────────────┬─ chunk 1 ─ … ─ wire_bytes
                        │ header │ substance │ padding │ stamp  │

A chunk carries whole blocks. The padding is shared out in proportion to the blocks,
so that every block costs the same on the wire.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from testbed_agents.transport.frame import (
    CHUNK_BYTES,
    HEADER_BYTES,
    STAMP_BYTES,
    table_bytes,
)


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """One chunk: ``offset`` and ``length`` in bytes of the transfer, blocks [first, last)."""

    seq: int
    first: int
    last: int
    offset: int
    length: int
    substance: int

    @property
    def padding(self) -> int:
        """Bytes between substance and stamp."""
        return self.length - CHUNK_BYTES - self.substance - STAMP_BYTES

    @property
    def end(self) -> int:
        """Offset of the first byte behind the chunk."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class Layout:
    """All chunks of a transfer of ``wire_bytes`` bytes in total."""

    wire_bytes: int
    chunks: tuple[ChunkPlan, ...]


def blocks_per_chunk(blocks: int, wire_bytes: int, chunk_bytes: int) -> int:
    """Whole blocks that make a chunk of about ``chunk_bytes`` emulated bytes."""
    return max(1, chunk_bytes * blocks // max(1, wire_bytes))


def minimum_bytes(substance: Sequence[int], per_chunk: int, extra: int = 0) -> int:
    """Fewest bytes that carry this substance: frames without any padding.

    ``extra`` bytes of frames stand between header and table.
    """
    chunks = max(1, -(-len(substance) // per_chunk))
    frames = (
        HEADER_BYTES + extra + table_bytes(len(substance)) + chunks * (CHUNK_BYTES + STAMP_BYTES)
    )
    return frames + sum(substance)


def lay_out(substance: Sequence[int], wire_bytes: int, per_chunk: int, extra: int = 0) -> Layout:
    """Chunks of a transfer whose blocks hold ``substance`` bytes each.

    ``wire_bytes`` below the minimum is raised to it. No blocks make one chunk of
    padding, so that fixed bytes travel too. ``extra`` as in ``minimum_bytes``.
    """
    blocks = len(substance)
    least = minimum_bytes(substance, per_chunk, extra)
    total = max(wire_bytes, least)
    spare = total - least
    offset = HEADER_BYTES + extra + table_bytes(blocks)
    chunks: list[ChunkPlan] = []
    given = 0
    for seq in range(max(1, -(-blocks // per_chunk))):
        first, last = seq * per_chunk, min(blocks, (seq + 1) * per_chunk)
        carried = sum(substance[first:last])
        share = spare * last // blocks if blocks else spare
        length = CHUNK_BYTES + carried + STAMP_BYTES + share - given
        chunks.append(ChunkPlan(seq, first, last, offset, length, carried))
        given = share
        offset += length
    return Layout(total, tuple(chunks))
