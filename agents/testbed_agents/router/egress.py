"""How busy each line between two sites is, as far as the router can tell. Pure.

::

    what P reported as delivered    ──┐  spread evenly over the time it took
                                      ├─ bytes of the last window / what the line carries
    what is still on its way        ──┘  all of it: it will need the line next

The second part makes the figure rise above 1 where more is under way than a window can
carry, so that feedback acts before the queue has emptied.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

WINDOW_NS = 1_000_000_000
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Delivery:
    """A transfer that ended: ``size_bytes`` between ``start_ns`` and ``end_ns``."""

    start_ns: int
    end_ns: int
    size_bytes: int

    def inside(self, begin_ns: int, end_ns: int) -> float:
        """Bytes of it between two times; all at its end where it took no time."""
        took = self.end_ns - self.start_ns
        if took <= 0:
            return float(self.size_bytes) if begin_ns < self.end_ns <= end_ns else 0.0
        overlap = min(self.end_ns, end_ns) - max(self.start_ns, begin_ns)
        return self.size_bytes * max(0, overlap) / took


class Egress:
    """Deliveries of the last window, by line."""

    def __init__(self, window_ns: int = WINDOW_NS) -> None:
        self._window_ns = window_ns
        self._deliveries: dict[str, deque[Delivery]] = {}

    def delivered(self, leg: str, now_ns: int, took_ns: int, size_bytes: int) -> None:
        """A transfer over ``leg`` ended now and took ``took_ns``."""
        row = self._deliveries.setdefault(leg, deque())
        row.append(Delivery(now_ns - took_ns, now_ns, size_bytes))
        self._forget(row, now_ns)

    def used(self, leg: str, now_ns: int, payload_bps: int, under_way_bytes: int) -> float:
        """Share of the line in use, 0 or more; 0 for a line that carries nothing."""
        if payload_bps <= 0:
            return 0.0
        row = self._deliveries.get(leg, deque())
        self._forget(row, now_ns)
        begin_ns = now_ns - self._window_ns
        moved = sum([one.inside(begin_ns, now_ns) for one in row])
        return (moved + under_way_bytes) * 8 * _NS / (payload_bps * self._window_ns)

    def _forget(self, row: deque[Delivery], now_ns: int) -> None:
        while row and row[0].end_ns <= now_ns - self._window_ns:
            row.popleft()
