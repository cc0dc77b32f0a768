"""A semaphore of N connections that are always there, pure: no I/O, no clock.

::

    request ──▶ [ waiting ] ──▶ busy (at most N) ──release──▶ idle
                   │ timeout / cancel      └──retire──▶ broken ──restore──▶ idle

The connection that has been idle longest is given out first, so that all N are in
use. A broken connection counts neither as busy nor as idle.
"""

from __future__ import annotations

from collections import deque

from testbed.contract.pool import Order
from testbed_agents.pool.discipline import Claim, Closing, Grant, Queued
from testbed_agents.pool.holdings import Holdings
from testbed_agents.pool.line import Line
from testbed_agents.pool.refusal import Refusal

_NOTHING = Claim()


class FifoPool(Holdings):
    """At most ``size`` connections, at most ``queue`` waiting, each for a bounded time.

    Misuse (releasing what is not busy, time running backwards) raises ValueError:
    it is a mistake of the caller, never of the network.
    """

    def __init__(
        self,
        size: int,
        queue: int,
        acquire_timeout_ns: int,
        order: Order = Order.FIRST_COME,
    ) -> None:
        if size < 1 or queue < 0 or acquire_timeout_ns < 1:
            raise ValueError("a pool needs size >= 1, queue >= 0, acquire_timeout_ns >= 1")
        self.size = size
        self._idle: deque[int] = deque(range(size))
        self._busy: set[int] = set()
        self._broken: set[int] = set()
        self._line = Line(queue, acquire_timeout_ns, order)
        self._next_ticket = 0
        self._closed = False
        self._now_ns: int | None = None
        self._busy_ns = 0
        self._exhausted_ns = 0

    @property
    def standing(self) -> int:
        """All are opened at the start and replaced when they break."""
        return self.size

    @property
    def broken(self) -> int:
        """Connections that are being replaced."""
        return len(self._broken)

    def request(self, now_ns: int, claim: Claim = _NOTHING) -> Grant | Queued | Refusal:
        """Ask for a connection."""
        self._advance(now_ns)
        if self._closed:
            return Refusal.CLOSED
        ticket = self._next_ticket
        if self._idle and not self._line:
            self._next_ticket += 1
            connection = self._idle.popleft()
            self._busy.add(connection)
            return Grant(ticket, connection, 0)
        if self._line.full:
            return Refusal.QUEUE_FULL
        self._next_ticket += 1
        return Queued(ticket, self._line.join(ticket, now_ns, claim))

    def spare(self, now_ns: int) -> Grant | None:
        """One more connection for who has one already, where nobody waits for it."""
        self._advance(now_ns)
        if self._closed or self._line or not self._idle:
            return None
        self._next_ticket += 1
        connection = self._idle.popleft()
        self._busy.add(connection)
        return Grant(self._next_ticket - 1, connection, 0)

    def release(self, connection: int, now_ns: int) -> Grant | None:
        """Give a healthy connection back; it goes to whose turn it is, if anybody waits."""
        self._advance(now_ns)
        self._take(self._busy, connection, "busy")
        self._idle.append(connection)
        return self._serve(now_ns)

    def retire(self, connection: int, now_ns: int, last: bool = False) -> Grant | None:
        """Take a broken connection out, whether it was busy or idle."""
        self._advance(now_ns)
        if connection in self._busy:
            self._busy.remove(connection)
        elif connection in self._idle:
            self._idle.remove(connection)
        else:
            raise ValueError(f"connection {connection} is neither busy nor idle")
        self._broken.add(connection)
        return None

    def restore(self, connection: int, now_ns: int) -> Grant | None:
        """Put a replaced connection back to work."""
        self._advance(now_ns)
        self._take(self._broken, connection, "broken")
        self._idle.append(connection)
        return self._serve(now_ns)

    def limit(self, fewer: int, ports: int | None, now_ns: int) -> tuple[Grant, ...]:
        """Misuse: what stands is retired, and restored when it may come back."""
        raise ValueError("connections stand")

    def cancel(self, ticket: int, now_ns: int) -> bool:
        """Forget a waiting transfer; False when it does not wait (any more)."""
        self._advance(now_ns)
        return self._line.leave(ticket)

    def expire(self, now_ns: int) -> tuple[int, ...]:
        """Drop and return the tickets that have waited their time, oldest first."""
        self._advance(now_ns)
        return self._line.expire(now_ns)

    def close(self, now_ns: int) -> tuple[int, ...]:
        """Refuse everything from now on; returns the tickets that waited."""
        self._advance(now_ns)
        self._closed = True
        return self._line.clear()

    def closings(self) -> tuple[Closing, ...]:
        """Never any: connections stand for as long as the pool."""
        return ()

    def busy_ns(self, now_ns: int) -> int:
        """Integral of busy connections over time: connection-nanoseconds."""
        self._advance(now_ns)
        return self._busy_ns

    def exhausted_ns(self, now_ns: int) -> int:
        """Time during which no connection was idle and something waited."""
        self._advance(now_ns)
        return self._exhausted_ns

    def _serve(self, now_ns: int) -> Grant | None:
        if not self._line or not self._idle:
            return None
        ticket, since_ns = self._line.next()
        connection = self._idle.popleft()
        self._busy.add(connection)
        return Grant(ticket, connection, now_ns - since_ns)

    def _take(self, state: set[int], connection: int, name: str) -> None:
        if connection not in state:
            raise ValueError(f"connection {connection} is not {name}")
        state.remove(connection)

    def _advance(self, now_ns: int) -> None:
        if self._now_ns is not None:
            elapsed_ns = now_ns - self._now_ns
            if elapsed_ns < 0:
                raise ValueError("time runs backwards")
            self._busy_ns += elapsed_ns * len(self._busy)
            if self._line and not self._idle:
                self._exhausted_ns += elapsed_ns
        self._now_ns = now_ns
