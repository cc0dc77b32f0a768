"""The ideal link: equal sharing among the transfers that hold a connection.

::

    arrivals ──► [FIFO queue of the pair] ──► at most N active ──► ack ──► released
                                               │ capacity / n each
                                               └ n counts the active transfers of all pairs

No packets, no slow start, no loss, one pipe instead of two legs: what TCP could at
best come to. A connection stays held for one round trip after its last byte left
(last byte there, acknowledgement back), in which it uses no capacity. Comparison
only: the oracle never stands in for the lab.

Exact and fast by *attained service*: while n transfers are active, each gains
capacity / n, so all share one rising level, and a transfer ends when the level has
risen by its size. One heap of end levels replaces per-transfer updates: O(log n) an
event, whatever n is.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.errors import AnalysisError


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer that wants a connection of ``pair`` from ``at_s`` on."""

    req: int
    at_s: float
    size_bytes: int
    pair: str = ""


@dataclass(frozen=True, slots=True)
class IdealLink:
    """What the transfers share.

    Attributes:
        capacity_bps: payload bit/s of all legs together.
        pool: connections of each pair (N).
        latency_s: one round trip, added to every transfer.
        connection_bps: most that one connection may carry; infinite for no bound.
    """

    capacity_bps: float
    pool: int
    latency_s: float = 0.0
    connection_bps: float = math.inf

    def __post_init__(self) -> None:
        if not (
            0 < self.capacity_bps < math.inf
            and self.pool >= 1
            and 0 <= self.latency_s < math.inf
            and self.connection_bps > 0
        ):
            raise AnalysisError(
                "simulate ideal sharing", str(self), "capacity, pool or latency is out of range"
            )


@dataclass(frozen=True, slots=True)
class Outcome:
    """One transfer's fate: ``wait_s`` in the queue, then ``duration_s`` to the acknowledgement."""

    req: int
    at_s: float
    size_bytes: int
    wait_s: float
    duration_s: float


def share(transfers: Sequence[Transfer], link: IdealLink) -> tuple[Outcome, ...]:
    """Run all ``transfers`` to their end; outcomes come in the order of the input.

    Transfers that arrive at the same moment are served in the order of the input.
    """
    return _Run(transfers, link).outcomes()


class _Run:
    """State of one simulation; ``level`` is the service in bytes that each active one attained."""

    def __init__(self, transfers: Sequence[Transfer], link: IdealLink) -> None:
        self._transfers = transfers
        self._link = link
        self._capacity = link.capacity_bps / 8.0
        self._cap = link.connection_bps / 8.0
        self._now = 0.0
        self._level = 0.0
        self._ends: list[tuple[float, int]] = []  # (level at which it ends, index)
        self._releases: deque[tuple[float, int]] = deque()  # constant latency keeps them sorted
        self._free: dict[str, int] = {}
        self._waiting: dict[str, deque[int]] = {}
        self._acquired = [math.nan] * len(transfers)
        self._released = [math.nan] * len(transfers)

    def outcomes(self) -> tuple[Outcome, ...]:
        order = sorted(range(len(self._transfers)), key=lambda i: self._transfers[i].at_s)
        for index in order:
            self._advance_to(self._transfers[index].at_s)
            self._arrive(index)
        self._advance_to(math.inf)
        return tuple(
            Outcome(
                req=transfer.req,
                at_s=transfer.at_s,
                size_bytes=transfer.size_bytes,
                wait_s=self._acquired[i] - transfer.at_s,
                duration_s=self._released[i] - self._acquired[i],
            )
            for i, transfer in enumerate(self._transfers)
        )

    def _rate(self) -> float:
        """Bytes per second that each active transfer gains now."""
        return min(self._cap, self._capacity / len(self._ends))

    def _advance_to(self, until_s: float) -> None:
        """Serve everything that ends or is released up to and including ``until_s``."""
        while True:
            end_s = math.inf
            if self._ends:
                end_s = self._now + max(0.0, self._ends[0][0] - self._level) / self._rate()
            release_s = self._releases[0][0] if self._releases else math.inf
            next_s = min(end_s, release_s)
            if next_s > until_s or next_s == math.inf:
                break
            if release_s <= end_s:
                self._serve(release_s)
                self._release(self._releases.popleft()[1])
            else:
                self._level, index = heapq.heappop(self._ends)
                self._now = end_s
                self._releases.append((end_s + self._link.latency_s, index))
            if not self._ends:
                self._level = 0.0  # idle: forget the level, and its rounding with it
        if until_s < math.inf:
            self._serve(until_s)

    def _serve(self, until_s: float) -> None:
        if self._ends:
            self._level += (until_s - self._now) * self._rate()
        self._now = until_s

    def _arrive(self, index: int) -> None:
        pair = self._transfers[index].pair
        if self._free.setdefault(pair, self._link.pool) > 0:
            self._free[pair] -= 1
            self._start(index)
        else:
            self._waiting.setdefault(pair, deque()).append(index)

    def _start(self, index: int) -> None:
        self._acquired[index] = self._now
        heapq.heappush(self._ends, (self._level + self._transfers[index].size_bytes, index))

    def _release(self, index: int) -> None:
        self._released[index] = self._now
        pair = self._transfers[index].pair
        waiting = self._waiting.get(pair)
        if waiting:
            self._start(waiting.popleft())
        else:
            self._free[pair] += 1
