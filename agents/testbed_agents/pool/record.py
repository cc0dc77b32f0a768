"""The events of one pool: what it tells of its transfers and connections."""

from __future__ import annotations

from testbed.contract.event import EventLog, Kind
from testbed_agents.clock import AgentClock
from testbed_agents.pool.discipline import Discipline, Ending
from testbed_agents.pool.refusal import AcquireError, Refusal


class PoolRecord:
    """Writes them, with the state of the rule after each step."""

    def __init__(self, peer: str, pool: Discipline, clock: AgentClock, log: EventLog) -> None:
        self._peer = peer
        self._pool = pool
        self._clock = clock
        self._log = log
        self._open = 0

    def queued(self, request: int, size: int = 0) -> None:
        """It asked, and was not refused at once; ``size`` is what it wants to send."""
        self._log.emit(
            Kind.POOL_QUEUED, size, req=request, peer=self._peer, busy=self._pool.busy,
            waiting=self._pool.waiting,
        )  # fmt: skip

    def acquired(self, request: int, connection: int, wait_ns: int, at_ns: int | None) -> int:
        """Returns when: at ``at_ns``, or now."""
        return self._log.emit(
            Kind.POOL_ACQUIRED, at_ns=at_ns, req=request, peer=self._peer, conn=connection,
            wait_ns=wait_ns, busy=self._pool.busy, waiting=self._pool.waiting,
        )  # fmt: skip

    def passed(self, kind: Kind, request: int, connection: int) -> None:
        """It was released, joined or left."""
        self._log.emit(
            kind, req=request, peer=self._peer, conn=connection,
            busy=self._pool.busy, waiting=self._pool.waiting,
        )  # fmt: skip

    def refused(self, request: int, reason: Refusal) -> AcquireError:
        """Returns the error that says the same."""
        self._log.emit(Kind.POOL_REFUSED, req=request, peer=self._peer, reason=reason.value)
        return AcquireError(f"request {request} to {self._peer}", reason)

    def opening(self, request: int, connection: int) -> int:
        """Returns when it began."""
        return self._log.emit(
            Kind.CONNECTION_OPENING, req=request, peer=self._peer, conn=connection
        )

    def opened(self, request: int, connection: int, began_ns: int) -> int:
        """Returns when it was open."""
        self._open += 1
        at_ns = self._clock.now_ns()
        return self._log.emit(
            Kind.CONNECTION_OPENED, at_ns=at_ns, req=request, peer=self._peer, conn=connection,
            took_ns=at_ns - began_ns, open=self._open,
        )  # fmt: skip

    def closed(self, connection: int, reason: Ending) -> None:
        """One that was open is not any more."""
        self._open -= 1
        self._log.emit(
            Kind.CONNECTION_CLOSED, peer=self._peer, conn=connection, reason=reason.value,
            open=self._open,
        )  # fmt: skip
