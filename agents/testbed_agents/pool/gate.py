"""Waiting at the pool: futures and timers around ``FifoPool``, and its events."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from testbed.contract.agent import Pool
from testbed.contract.event import EventLog, Kind
from testbed_agents.clock import AgentClock
from testbed_agents.pool.fifo import FifoPool, Grant, Queued
from testbed_agents.pool.refusal import AcquireError, Refusal


@dataclass(frozen=True, slots=True)
class Lease:
    """A connection in use: since when, and how long its holder had waited."""

    connection: int
    wait_ns: int
    at_ns: int


class PoolGate:
    """The pool of one (sender, receiver) pair. All calls on one event loop."""

    def __init__(self, peer: str, pool: Pool, clock: AgentClock, log: EventLog) -> None:
        self._peer = peer
        self._clock = clock
        self._log = log
        self._pool = FifoPool(pool.size, pool.queue, pool.acquire_timeout_ns)
        self._waiters: dict[int, tuple[int, asyncio.Future[Grant]]] = {}  # ticket -> request
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def state(self) -> FifoPool:
        """The rule itself, to be read."""
        return self._pool

    async def acquire(self, request: int) -> Lease:
        """Wait for a connection, first come, first served.

        Raises AcquireError when the queue is full, the wait is too long or the pool is
        closed. A cancelled wait loses nothing: a grant that came in between moves on.
        """
        now_ns = self._clock.now_ns()
        outcome = self._pool.request(now_ns)
        if isinstance(outcome, Refusal):
            raise self._refused(request, outcome)
        self._emit(Kind.POOL_QUEUED, request)
        grant = await self._wait(request, outcome) if isinstance(outcome, Queued) else outcome
        at_ns = self._log.emit(
            Kind.POOL_ACQUIRED, req=request, peer=self._peer, conn=grant.connection,
            wait_ns=grant.wait_ns, busy=self._pool.busy, waiting=self._pool.waiting,
        )  # fmt: skip
        return Lease(grant.connection, grant.wait_ns, at_ns)

    def release(self, request: int, connection: int) -> None:
        """Give a healthy connection back."""
        grant = self._pool.release(connection, self._clock.now_ns())
        self._emit_released(request, connection)
        self._deliver(grant)

    def retire(self, connection: int, request: int | None = None) -> None:
        """Take a broken connection out of use; ``request`` held it, if any."""
        self._pool.retire(connection, self._clock.now_ns())
        if request is not None:
            self._emit_released(request, connection)

    def restore(self, connection: int) -> None:
        """A replacement of ``connection`` is open."""
        self._deliver(self._pool.restore(connection, self._clock.now_ns()))

    def close(self) -> None:
        """Refuse all who wait and all who come."""
        for ticket in self._pool.close(self._clock.now_ns()):
            self._refuse(ticket, Refusal.CLOSED)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    async def _wait(self, request: int, queued: Queued) -> Grant:
        future: asyncio.Future[Grant] = asyncio.get_running_loop().create_future()
        self._waiters[queued.ticket] = (request, future)
        self._set_alarm()
        try:
            return await future
        except asyncio.CancelledError:
            self._pool.cancel(queued.ticket, self._clock.now_ns())
            given = future.done() and not future.cancelled()
            if not given or future.exception() is None:  # else it was refused already
                self._refused(request, Refusal.CANCELLED)
            if given and future.exception() is None:
                now_ns = self._clock.now_ns()
                self._deliver(self._pool.release(future.result().connection, now_ns))
            raise
        finally:
            self._waiters.pop(queued.ticket, None)

    def _deliver(self, grant: Grant | None) -> None:
        while grant is not None:
            _, future = self._waiters[grant.ticket]
            if not future.done():
                future.set_result(grant)
                return
            # its task is being cancelled: the connection moves on
            grant = self._pool.release(grant.connection, self._clock.now_ns())

    def _set_alarm(self) -> None:
        deadline_ns = self._pool.next_deadline_ns
        if self._alarm is None and deadline_ns is not None:
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_at(self._clock.loop_time(deadline_ns), self._ring)

    def _ring(self) -> None:
        self._alarm = None
        for ticket in self._pool.expire(self._clock.now_ns()):
            self._refuse(ticket, Refusal.TIMEOUT)
        self._set_alarm()

    def _refuse(self, ticket: int, reason: Refusal) -> None:
        request, future = self._waiters[ticket]
        if not future.done():
            future.set_exception(self._refused(request, reason))

    def _refused(self, request: int, reason: Refusal) -> AcquireError:
        self._log.emit(Kind.POOL_REFUSED, req=request, peer=self._peer, reason=reason.value)
        return AcquireError(f"request {request} to {self._peer}", reason)

    def _emit(self, kind: Kind, request: int) -> None:
        self._log.emit(
            kind, req=request, peer=self._peer, busy=self._pool.busy, waiting=self._pool.waiting
        )

    def _emit_released(self, request: int, connection: int) -> None:
        self._log.emit(
            Kind.POOL_RELEASED, req=request, peer=self._peer, conn=connection,
            busy=self._pool.busy, waiting=self._pool.waiting,
        )  # fmt: skip
