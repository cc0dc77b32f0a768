"""A transfer as the agents see it: blocks in, a receipt out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

INCREMENT = 1 << 16
"""First epoch of the transfer from RLD to MD that follows P's (handoff ``incremental-kv``); those
below are attempts at P's."""


def supersedes(epoch: int, other: int) -> bool:
    """Whether an attempt of ``epoch`` takes the place of an earlier one of ``other``."""
    return other < epoch and other // INCREMENT == epoch // INCREMENT


@dataclass(frozen=True, slots=True)
class OutgoingTransfer:
    """The real KV of ``blocks``, to arrive inside ``wire_bytes`` bytes.

    ``epoch`` is the attempt: a receiver accepts each (request, epoch) once and none
    older than the newest seen. Fewer ``wire_bytes`` than the frames and the substance
    need are raised to that minimum; the receipt says what was sent. ``due_ns`` is what a pool
    may order by (``Claim``): any time that rises with the deadline.
    """

    request: int
    epoch: int
    blocks: Sequence[bytes | bytearray | memoryview]
    wire_bytes: int
    due_ns: int | None = None


@dataclass(frozen=True, slots=True)
class IncomingTransfer:
    """A complete transfer whose digests and stamps all agree."""

    request: int
    epoch: int
    blocks: tuple[memoryview, ...]
    wire_bytes: int
    peer: str
    connection: int
    unequal: int = 0
    """Blocks whose digest is not the sender's; none where digests are checked."""
    missing: int = 0
    """Blocks that never came; none where they are counted."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """An acknowledged transfer: payload bytes sent, and times in nanoseconds."""

    request: int
    connection: int
    wire_bytes: int
    wait_ns: int
    duration_ns: int
    """From connection acquired to acknowledgement received."""
