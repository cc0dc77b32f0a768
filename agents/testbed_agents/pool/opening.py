"""Opening a connection within the time that a wait may take, or until the pool is closed."""

from __future__ import annotations

import asyncio
from typing import Protocol

from testbed_agents.clock import AgentClock
from testbed_agents.pool.refusal import OpenError, Refusal

ANSWER_NS = 1_500_000_000
"""How long an impatient opening may take: the kernel repeats a lost SYN after 1 s."""


class Connections(Protocol):
    """What opens and closes connections where the discipline does so on demand."""

    async def open(self, connection: int) -> None:
        """Open it, or raise OpenError."""
        ...

    def close(self, connection: int, in_order: bool) -> None:
        """Close it: in order, so that its port rests in TIME_WAIT, or by a reset."""
        ...

    def abort(self, connection: int) -> None:
        """Reset it, and leave what becomes of it to its holder."""
        ...


class Opener:
    """Opens the connections of one pool."""

    def __init__(self, peer: str, connections: Connections, clock: AgentClock) -> None:
        self._peer = peer
        self._connections = connections
        self._clock = clock
        self._limits: set[asyncio.Timeout] = set()
        self._closed = False

    @property
    def under_way(self) -> int:
        """How many are being opened."""
        return len(self._limits)

    async def open(self, connection: int, within_ns: int, patient: bool = True) -> None:
        """Raises OpenError, also where it takes too long or the pool is closed meanwhile.

        Without ``patient`` it takes ``ANSWER_NS`` at most.
        """
        impatient = not patient and within_ns > ANSWER_NS
        within_ns = ANSWER_NS if impatient else within_ns
        late = Refusal.UNANSWERED if impatient else Refusal.TIMEOUT
        try:
            async with asyncio.timeout(self._clock.seconds(max(1, within_ns))) as limit:
                self._limits.add(limit)
                try:
                    await self._connections.open(connection)
                finally:
                    self._limits.remove(limit)
        except TimeoutError as error:
            reason = Refusal.CLOSED if self._closed else late
            raise OpenError(reason, self._peer, "no answer in time") from error
        if self._closed:
            self._connections.close(connection, in_order=False)
            raise OpenError(Refusal.CLOSED, self._peer, "its pool was closed")

    def close(self) -> None:
        """End all that are being opened."""
        self._closed = True
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(0)  # long past: it ends in the next turn
