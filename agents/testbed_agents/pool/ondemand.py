"""What disciplines that open connections on demand have in common. Pure.

::

    request ──▶ [ waiting ] ──▶ busy ──release──▶ idle ──▶ busy …      (kept)
                  (at the bound)  │ ▲               │ idle time-out
                            retire│ └─ opens ─┐     ▼
                                  └────────▶ free numbers, the next to be opened first

A connection is a number below ``ports``, as is its source port. A number that was closed in
order goes to the end of the free ones, because its port rests in TIME_WAIT; one that was
reset, or never opened, goes to their front, unless its leg seems to be down.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import OrderedDict, deque

from testbed_agents.pool.discipline import Claim, Closing, Ending, Grant, Queued
from testbed_agents.pool.holdings import Holdings
from testbed_agents.pool.line import Line
from testbed_agents.pool.refusal import Refusal

_NOTHING = Claim()


class OnDemand(Holdings):
    """A ``Discipline`` over ``ports`` numbers, at most ``size`` of them open at a time.

    Without a size nobody waits: where all numbers are in use a request is refused (no-port).
    """

    standing = 0
    broken = 0

    def __init__(self, size: int | None, ports: int, line: Line) -> None:
        if ports < 1 or (size is not None and not 1 <= size <= ports):
            raise ValueError("a pool needs ports >= 1 and 1 <= size <= ports, or no size")
        self._size = size
        self._most = self._full = ports if size is None else size
        self._ports: int | None = None
        self._line = line
        self._free: deque[int] = deque(range(ports))
        self._idle: OrderedDict[int, int] = OrderedDict()  # connection -> since_ns, oldest first
        self._busy: set[int] = set()
        self._given_up: list[Closing] = []
        self._next_ticket = 0
        self._closed = False
        self._now_ns: int | None = None

    @abstractmethod
    def _pick(self) -> int | None:
        """The idle connection to be used next; None to open another."""

    @abstractmethod
    def _keeps(self) -> bool:
        """Whether a connection stays open after its transfer."""

    def request(self, now_ns: int, claim: Claim = _NOTHING) -> Grant | Queued | Refusal:
        """Ask for a connection."""
        self._advance(now_ns)
        if self._closed:
            return Refusal.CLOSED
        ticket = self._next_ticket
        grant = None if self._line else self._give(ticket, 0)
        if grant is not None:
            self._next_ticket += 1
            return grant
        if self._size is None:
            return Refusal.NO_PORT
        if self._line.full:
            return Refusal.QUEUE_FULL
        self._next_ticket += 1
        return Queued(ticket, self._line.join(ticket, now_ns, claim))

    def spare(self, now_ns: int) -> Grant | None:
        """One more connection for who has one already, where nobody waits for it."""
        self._advance(now_ns)
        grant = None if self._closed or self._line else self._give(self._next_ticket, 0)
        self._next_ticket += grant is not None
        return grant

    def release(self, connection: int, now_ns: int) -> Grant | None:
        """Give a healthy connection back; whose turn it is gets one."""
        self._advance(now_ns)
        if connection not in self._busy:
            raise ValueError(f"connection {connection} is not busy")
        self._busy.remove(connection)
        if self._closed:
            self._give_up(connection, Ending.CLOSED)
        elif self._keeps() and len(self._busy) + len(self._idle) < self._most:
            self._idle[connection] = now_ns
        elif self._keeps():
            self._give_up(connection, Ending.SHRUNK)
        else:
            self._give_up(connection, Ending.AFTER_USE)
        return self._serve(now_ns)

    def retire(self, connection: int, now_ns: int, last: bool = False) -> Grant | None:
        """Take a connection out that broke or could not be opened; its number is free again."""
        self._advance(now_ns)
        if connection in self._busy:
            self._busy.remove(connection)
        elif connection in self._idle:
            del self._idle[connection]
        else:
            raise ValueError(f"connection {connection} is neither busy nor idle")
        if last:
            self._free.append(connection)
        else:
            self._free.appendleft(connection)
        return self._serve(now_ns)

    def restore(self, connection: int, now_ns: int) -> Grant | None:
        """Misuse: what breaks is not replaced, another is opened when it is needed."""
        raise ValueError(f"connection {connection} is not broken")

    def limit(self, fewer: int, ports: int | None, now_ns: int) -> tuple[Grant, ...]:
        """Fewer connections, source ports or both; the oldest idle ones are given up at once."""
        self._advance(now_ns)
        self._most = max(0, self._full - fewer)
        if self._ports is not None and self._ports != ports:
            used = [number for number in self._free if number < self._ports]
            rested = [number for number in self._free if number >= self._ports]
            self._free = deque((*rested, *used))
        self._ports = ports
        while self._idle and len(self._busy) + len(self._idle) > self._most:
            connection, _ = self._idle.popitem(last=False)
            self._give_up(connection, Ending.SHRUNK)
        granted: list[Grant] = []
        while (grant := self._serve(now_ns)) is not None:
            granted.append(grant)
        return tuple(granted)

    def cancel(self, ticket: int, now_ns: int) -> bool:
        """Forget a waiting transfer; False when it does not wait (any more)."""
        self._advance(now_ns)
        return self._line.leave(ticket)

    def expire(self, now_ns: int) -> tuple[int, ...]:
        """Drop and return the tickets that have waited their time, oldest first."""
        self._advance(now_ns)
        return self._line.expire(now_ns)

    def close(self, now_ns: int) -> tuple[int, ...]:
        """Refuse everything from now on, and give all idle connections up."""
        self._advance(now_ns)
        self._closed = True
        for connection in tuple(self._idle):
            del self._idle[connection]
            self._give_up(connection, Ending.CLOSED)
        return self._line.clear()

    def closings(self) -> tuple[Closing, ...]:
        """Connections given up since the last call, which must be closed now."""
        given_up = tuple(self._given_up)
        self._given_up.clear()
        return given_up

    def _give_up(self, connection: int, reason: Ending) -> None:
        self._free.append(connection)
        self._given_up.append(Closing(connection, reason))

    def _serve(self, now_ns: int) -> Grant | None:
        if not self._line or len(self._busy) >= self._most:
            return None
        if not self._idle and self._next_free() is None:
            return None
        ticket, since_ns = self._line.next()
        return self._give(ticket, now_ns - since_ns)

    def _give(self, ticket: int, wait_ns: int) -> Grant | None:
        connection = self._pick()
        if connection is not None:
            del self._idle[connection]
        elif len(self._busy) + len(self._idle) < self._most:
            opened = self._next_free()
            if opened is None:
                return None
            self._free.remove(opened)
            self._busy.add(opened)
            return Grant(ticket, opened, wait_ns, opens=True)
        else:
            return None
        self._busy.add(connection)
        return Grant(ticket, connection, wait_ns)

    def _next_free(self) -> int | None:
        """The number to be opened next, of those that may be used."""
        for number in self._free:
            if self._ports is None or number < self._ports:
                return number
        return None

    def _advance(self, now_ns: int) -> None:
        if self._now_ns is not None and now_ns < self._now_ns:
            raise ValueError("time runs backwards")
        self._now_ns = now_ns
