"""The rule of a connection pool, pure: no I/O, no clock; time is an argument.

::

    request ──▶ [ waiting, oldest first ] ──▶ busy (at most N) ──release──▶ idle
                   │ timeout / cancel              └──retire──▶ broken ──restore──▶ idle

The connection that has been idle longest is given out first, so that all N are in
use. A broken connection counts neither as busy nor as idle.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass

from testbed_agents.pool.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Grant:
    """Connection ``connection`` belongs to ``ticket`` from now on."""

    ticket: int
    connection: int
    wait_ns: int


@dataclass(frozen=True, slots=True)
class Queued:
    """``ticket`` waits; it is refused at ``deadline_ns`` unless granted before."""

    ticket: int
    deadline_ns: int


class FifoPool:
    """At most ``size`` connections, at most ``queue`` waiting, each for a bounded time.

    Misuse (releasing what is not busy, time running backwards) raises ValueError:
    it is a mistake of the caller, never of the network.
    """

    def __init__(self, size: int, queue: int, acquire_timeout_ns: int) -> None:
        if size < 1 or queue < 0 or acquire_timeout_ns < 1:
            raise ValueError("a pool needs size >= 1, queue >= 0, acquire_timeout_ns >= 1")
        self.size = size
        self._queue = queue
        self._timeout_ns = acquire_timeout_ns
        self._idle: deque[int] = deque(range(size))
        self._busy: set[int] = set()
        self._broken: set[int] = set()
        self._waiting: OrderedDict[int, int] = OrderedDict()  # ticket -> since_ns
        self._next_ticket = 0
        self._closed = False
        self._now_ns: int | None = None
        self._busy_ns = 0
        self._exhausted_ns = 0

    @property
    def busy(self) -> int:
        """Connections that carry a transfer."""
        return len(self._busy)

    @property
    def waiting(self) -> int:
        """Transfers that wait for a connection."""
        return len(self._waiting)

    @property
    def broken(self) -> int:
        """Connections that are being replaced."""
        return len(self._broken)

    @property
    def next_deadline_ns(self) -> int | None:
        """When the oldest waiting transfer is refused; None when nothing waits."""
        for since_ns in self._waiting.values():
            return since_ns + self._timeout_ns
        return None

    def is_idle(self, connection: int) -> bool:
        """Whether nobody uses it and it is not broken."""
        return connection in self._idle

    def request(self, now_ns: int) -> Grant | Queued | Refusal:
        """Ask for a connection."""
        self._advance(now_ns)
        if self._closed:
            return Refusal.CLOSED
        ticket = self._next_ticket
        if self._idle and not self._waiting:
            self._next_ticket += 1
            connection = self._idle.popleft()
            self._busy.add(connection)
            return Grant(ticket, connection, 0)
        if len(self._waiting) >= self._queue:
            return Refusal.QUEUE_FULL
        self._next_ticket += 1
        self._waiting[ticket] = now_ns
        return Queued(ticket, now_ns + self._timeout_ns)

    def release(self, connection: int, now_ns: int) -> Grant | None:
        """Give a healthy connection back; it goes to the oldest waiting transfer, if any."""
        self._advance(now_ns)
        self._take(self._busy, connection, "busy")
        self._idle.append(connection)
        return self._grant_oldest(now_ns)

    def retire(self, connection: int, now_ns: int) -> None:
        """Take a broken connection out, whether it was busy or idle."""
        self._advance(now_ns)
        if connection in self._busy:
            self._busy.remove(connection)
        elif connection in self._idle:
            self._idle.remove(connection)
        else:
            raise ValueError(f"connection {connection} is neither busy nor idle")
        self._broken.add(connection)

    def restore(self, connection: int, now_ns: int) -> Grant | None:
        """Put a replaced connection back to work."""
        self._advance(now_ns)
        self._take(self._broken, connection, "broken")
        self._idle.append(connection)
        return self._grant_oldest(now_ns)

    def cancel(self, ticket: int, now_ns: int) -> bool:
        """Forget a waiting transfer; False when it does not wait (any more)."""
        self._advance(now_ns)
        return self._waiting.pop(ticket, None) is not None

    def expire(self, now_ns: int) -> tuple[int, ...]:
        """Drop and return the tickets that have waited their time, oldest first."""
        self._advance(now_ns)
        late: list[int] = []
        for ticket, since_ns in self._waiting.items():
            if since_ns + self._timeout_ns > now_ns:
                break
            late.append(ticket)
        for ticket in late:
            del self._waiting[ticket]
        return tuple(late)

    def close(self, now_ns: int) -> tuple[int, ...]:
        """Refuse everything from now on; returns the tickets that waited."""
        self._advance(now_ns)
        self._closed = True
        tickets = tuple(self._waiting)
        self._waiting.clear()
        return tickets

    def busy_ns(self, now_ns: int) -> int:
        """Integral of busy connections over time: connection-nanoseconds."""
        self._advance(now_ns)
        return self._busy_ns

    def exhausted_ns(self, now_ns: int) -> int:
        """Time during which no connection was idle and something waited."""
        self._advance(now_ns)
        return self._exhausted_ns

    def _grant_oldest(self, now_ns: int) -> Grant | None:
        if not self._waiting or not self._idle:
            return None
        ticket, since_ns = self._waiting.popitem(last=False)
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
            if self._waiting and not self._idle:
                self._exhausted_ns += elapsed_ns
        self._now_ns = now_ns
