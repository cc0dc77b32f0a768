"""Who waits for a connection, and whose turn it is. Pure.

::

    join ──▶ [ waiting: ticket -> since, oldest first ] ──next──▶ served
                  │ leave / expire            └ by the heap, or the oldest
"""

from __future__ import annotations

import heapq
from collections import OrderedDict

from testbed.contract.pool import Order
from testbed_agents.pool.discipline import Claim


class Line:
    """At most ``most`` tickets, each for at most ``patience_ns``, served by ``order``.

    Equals are served in the order of their tickets, which rise.
    """

    def __init__(self, most: int, patience_ns: int, order: Order = Order.FIRST_COME) -> None:
        if most < 0 or patience_ns < 1:
            raise ValueError("a line needs most >= 0 and patience_ns >= 1")
        self._most = most
        self._patience_ns = patience_ns
        self._order = order
        self._since: OrderedDict[int, int] = OrderedDict()
        self._heap: list[tuple[int, int]] = []  # (key, ticket); who has left is passed over

    def __len__(self) -> int:
        return len(self._since)

    @property
    def full(self) -> bool:
        """Whether nobody else may wait."""
        return len(self._since) >= self._most

    @property
    def next_deadline_ns(self) -> int | None:
        """When the one who has waited longest is refused; None when nobody waits."""
        for since_ns in self._since.values():
            return since_ns + self._patience_ns
        return None

    def join(self, ticket: int, now_ns: int, claim: Claim) -> int:
        """Wait from now on; returns the time at which the wait ends at the latest."""
        self._since[ticket] = now_ns
        if self._order is Order.SMALLEST_FIRST:
            heapq.heappush(self._heap, (claim.size_bytes, ticket))
        elif self._order is Order.EARLIEST_DEADLINE:
            due_ns = now_ns if claim.due_ns is None else claim.due_ns
            heapq.heappush(self._heap, (due_ns, ticket))
        return now_ns + self._patience_ns

    def leave(self, ticket: int) -> bool:
        """Wait no longer; False when it did not wait."""
        left = self._since.pop(ticket, None) is not None
        if left:
            self._tidy()
        return left

    def next(self) -> tuple[int, int]:
        """Take out whose turn it is: (ticket, since). Raises KeyError when nobody waits."""
        if self._order is Order.FIRST_COME or not self._since:
            return self._since.popitem(last=False)
        while True:
            _, ticket = heapq.heappop(self._heap)
            since_ns = self._since.pop(ticket, None)
            if since_ns is not None:
                return ticket, since_ns

    def before(self, claim: Claim) -> tuple[int, int] | None:
        """Take out whose turn it is, as ``next`` does, if it comes before ``claim``."""
        while self._heap and self._heap[0][1] not in self._since:
            heapq.heappop(self._heap)
        own = claim.size_bytes if self._order is Order.SMALLEST_FIRST else claim.due_ns
        if not self._heap or own is None or self._heap[0][0] >= own:
            return None
        return self.next()

    def expire(self, now_ns: int) -> tuple[int, ...]:
        """Take out and return who has waited for the whole time, the oldest first."""
        late: list[int] = []
        for ticket, since_ns in self._since.items():
            if since_ns + self._patience_ns > now_ns:
                break
            late.append(ticket)
        for ticket in late:
            del self._since[ticket]
        if late:
            self._tidy()
        return tuple(late)

    def clear(self) -> tuple[int, ...]:
        """Take out and return all, the oldest first."""
        tickets = tuple(self._since)
        self._since.clear()
        self._heap.clear()
        return tickets

    def _tidy(self) -> None:
        """Who leaves from the middle stays in the heap; it must not outgrow the line."""
        if len(self._heap) > 2 * len(self._since) + 8:
            self._heap = [entry for entry in self._heap if entry[1] in self._since]
            heapq.heapify(self._heap)
