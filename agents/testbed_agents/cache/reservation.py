"""Room for blocks that are being computed or are on their way."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Refusal(StrEnum):
    """Why there is no room; nothing was evicted."""

    TOO_LARGE = "too-large"
    """More blocks than the whole budget has: waiting will not help."""
    BUSY = "busy"
    """Locks and other reservations leave too little: it may fit later."""


class Reservation:
    """``blocks`` blocks of the budget; ends when it is published into, or cancelled."""

    __slots__ = ("_end", "blocks", "evicted")

    def __init__(self, blocks: int, evicted: tuple[int, ...], end: Callable[[int], None]) -> None:
        self.blocks = blocks
        self.evicted = evicted
        """Keys of the blocks that made room, in order."""
        self._end: Callable[[int], None] | None = end

    @property
    def is_open(self) -> bool:
        """Whether it was neither committed nor cancelled."""
        return self._end is not None

    def cancel(self) -> None:
        """Give all of the room back; what was evicted stays evicted.

        Raises:
            ValueError: it has ended before.
        """
        self.settle(0)

    def settle(self, published: int) -> None:
        """End it; the cache keeps ``published`` blocks of the room, the rest is free again.

        For the cache: others publish or cancel.

        Raises:
            ValueError: it has ended before, or has not that much room.
        """
        if self._end is None:
            raise ValueError("a reservation was ended twice")
        if not 0 <= published <= self.blocks:
            raise ValueError(f"{published} blocks do not fit into a reservation of {self.blocks}")
        end, self._end = self._end, None
        end(published)
