"""A part of a transfer that goes over several connections at once: its frame, and the cut. Pure.

::

    transfer   part 0 │ HEADER │ PART │ table │ chunks …   on one connection
               part 1 │ HEADER │ PART │ table │ chunks …   on another

A part is a transfer of its own on its connection, with its own table and chunks; PART says
what it is a part of. A transfer in one piece has no such frame. Parts ``in_turn`` go one by one
over one connection, and each is acknowledged before the next.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.contract.agent import PROTOCOL
from testbed_agents.transport import frame
from testbed_agents.transport.fault import Fault, FrameError
from testbed_agents.transport.transfer import OutgoingTransfer

_PART = struct.Struct("<4sHHQHHIIQ")
PART_BYTES = _PART.size + frame.SUM_BYTES


@dataclass(frozen=True, slots=True)
class Part:
    """Part ``number`` of ``of``: blocks from ``first`` on, of ``blocks`` in ``wire_bytes``."""

    request: int
    number: int
    of: int
    first: int
    blocks: int
    wire_bytes: int
    in_turn: bool = False

    @property
    def last(self) -> bool:
        """Whether no other follows."""
        return self.number + 1 == self.of


def encode_part(part: Part) -> bytes:
    """The frame that follows the header of a part."""
    return frame.sealed(
        _PART.pack(
            b"KVPT", PROTOCOL, part.in_turn, part.request, part.number, part.of,
            part.first, part.blocks, part.wire_bytes,
        )
    )  # fmt: skip


def decode_part(data: frame.Bytes, header: frame.Header) -> Part:
    """Raises FrameError, also where it does not belong to ``header``."""
    body = frame.opened(data, b"KVPT", PART_BYTES)
    _, _, in_turn, request, number, of, first, blocks, wire_bytes = _PART.unpack(body)
    part = Part(request, number, of, first, blocks, wire_bytes, bool(in_turn))
    frame.bound("blocks", blocks, frame.MAX_BLOCKS)
    frame.bound("wire bytes", wire_bytes, frame.MAX_WIRE)
    belongs = request == header.request and of == header.parts and number < of
    if not belongs or first + header.blocks > blocks or header.wire_bytes > wire_bytes:
        raise FrameError(Fault.OUT_OF_ORDER, f"request {header.request}", f"{part} in {header}")
    return part


def shares(transfer: OutgoingTransfer, count: int) -> tuple[tuple[int, OutgoingTransfer], ...]:
    """``count`` runs of whole blocks as (first block, transfer), their bytes in proportion.

    ``count`` is at most the number of blocks.
    """
    blocks: Sequence[frame.Bytes] = transfer.blocks
    total = len(blocks)
    found: list[tuple[int, OutgoingTransfer]] = []
    for number in range(count):
        first, last = total * number // count, total * (number + 1) // count
        before, behind = (transfer.wire_bytes * end // total for end in (first, last))
        found.append(
            (
                first,
                OutgoingTransfer(
                    transfer.request, transfer.epoch, blocks[first:last], behind - before
                ),
            )
        )
    return tuple(found)
