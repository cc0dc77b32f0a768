"""Waiting at the pool: futures and timers around a ``Discipline``, and its events.

::

    queued ──▶ (wait) ──▶ acquired ──▶ released              standing connections
    queued ──▶ (wait) ──▶ opening ──▶ opened ──▶ acquired …   opened on demand
                  └──────────┴──▶ refused                      … and closed, with a reason
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

from testbed.contract.event import EventLog, Kind
from testbed.contract.pool import Pool
from testbed_agents.clock import AgentClock
from testbed_agents.pool.choose import discipline_of
from testbed_agents.pool.discipline import Claim, Discipline, Ending, Grant, Queued
from testbed_agents.pool.loan import Loans
from testbed_agents.pool.opening import Connections, Opener
from testbed_agents.pool.record import PoolRecord
from testbed_agents.pool.refusal import AcquireError, OpenError, Refusal

_NOTHING = Claim()


@dataclass(frozen=True, slots=True)
class Lease:
    """A connection in use: since when, and how long its holder had waited."""

    connection: int
    wait_ns: int
    at_ns: int
    lent: bool = False
    """It is another's, who goes on with it behind this transfer."""


class PoolGate:
    """The pool of one (sender, receiver) pair. All calls on one event loop."""

    def __init__(
        self, peer: str, pool: Pool, clock: AgentClock, log: EventLog, connections: Connections,
        sizes: bool = False,
    ) -> None:  # fmt: skip
        self._clock = clock
        self._sizes = sizes  # whether the record says how many bytes wait
        self._connections = connections
        self._patience_ns = pool.acquire_timeout_ns
        self._pool = discipline_of(pool)
        self._record = PoolRecord(peer, self._pool, clock, log)
        self._waiters: dict[int, tuple[int, asyncio.Future[Grant]]] = {}  # ticket -> request
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_ns = 0
        self._closed = False
        self._opener = Opener(peer, connections, clock)
        self._loans = Loans(connections)

    @property
    def state(self) -> Discipline:
        """The rule itself, to be read."""
        return self._pool

    async def acquire(self, request: int, claim: Claim = _NOTHING, patient: bool = True) -> Lease:
        """Wait for a connection, and until it is open; whose turn it is the discipline says.

        Without ``patient`` it is given up soon where nobody answers (``unanswered``).

        Raises AcquireError when the queue is full, the wait is too long, the connection
        cannot be opened or the pool is closed. A cancelled wait loses nothing: a grant that
        came in between moves on.
        """
        now_ns = self._clock.now_ns()
        outcome = self._pool.request(now_ns, claim)
        if isinstance(outcome, Refusal):
            raise self._record.refused(request, outcome)
        self._record.queued(request, claim.size_bytes if self._sizes else 0)
        grant = await self._wait(request, outcome) if isinstance(outcome, Queued) else outcome
        wait_ns, open_ns = grant.wait_ns, None
        if grant.opens:
            open_ns = await self._opened(request, grant, now_ns, patient)
            wait_ns = open_ns - now_ns
        at_ns = self._record.acquired(request, grant.connection, wait_ns, open_ns)
        return Lease(grant.connection, wait_ns, at_ns, grant.lent)

    def refuse(self, request: int, reason: Refusal) -> AcquireError:
        """Turn a transfer away that has not asked for a connection."""
        return self._record.refused(request, reason)

    async def join(self, request: int, most: int) -> tuple[int, ...]:
        """Up to ``most`` more connections for who holds one: those that nobody else wants now.

        One that cannot be opened is done without. They are given back by ``leave``.
        """
        joined: list[int] = []
        opening: dict[int, Grant] = {}
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(most):
                    grant = self._pool.spare(self._clock.now_ns())
                    if grant is None:
                        break
                    if grant.opens:
                        opening[grant.connection] = grant
                        began_ns = self._record.opening(request, grant.connection)
                        group.create_task(
                            self._open_to_join(request, opening, grant, began_ns, joined)
                        )
                    else:
                        self._joined(request, grant.connection, joined)
        except BaseException as error:
            self._not_joined(request, opening)
            for connection in joined:
                self.leave(request, connection, healthy=True)
            if isinstance(error, ExceptionGroup):
                raise error.exceptions[0] from error
            raise
        self._not_joined(request, opening)
        return tuple(joined)

    def leave(self, request: int, connection: int, healthy: bool) -> None:
        """Give back what was joined, by whatever became of it."""
        now_ns = self._clock.now_ns()
        change = self._pool.release if healthy else self._pool.retire
        grant = change(connection, now_ns)
        self._record.passed(Kind.POOL_LEFT, request, connection)
        if not healthy and not self._pool.standing:
            self._connections.close(connection, in_order=False)
            self._record.closed(connection, Ending.BROKEN)
        self._settle()
        self._deliver(grant)

    async def lend(self, request: int, connection: int, claim: Claim) -> None:
        """Between two chunks: lend the connection to those that come before ``claim``.

        Returns when it is back; whether it is still of use its holder sees.
        """
        while (grant := self._pool.lend(connection, claim, self._clock.now_ns())) is not None:
            borrower, future = self._waiters[grant.ticket]
            if future.done():
                continue  # its task is being cancelled
            back = self._loans.begin(borrower, connection)
            self._record.passed(Kind.POOL_SUSPENDED, request, connection)
            future.set_result(grant)
            healthy = await back
            self._record.passed(Kind.POOL_RESUMED, request, connection)
            if not healthy:
                return

    def release(self, request: int, connection: int) -> None:
        """Give a healthy connection back."""
        if self._loans.end(request, connection, healthy=True):
            self._record.passed(Kind.POOL_RELEASED, request, connection)
            return
        grant = self._pool.release(connection, self._clock.now_ns())
        self._record.passed(Kind.POOL_RELEASED, request, connection)
        self._settle()
        self._deliver(grant)

    def retire(self, connection: int, request: int | None = None, last: bool = False) -> bool:
        """Take a broken connection out of use; ``request`` held it, if any.

        ``last``: its leg seems to be down, so others are opened before it.

        Returns whether it must be opened anew: not where none stand, nor where it was lent, and
        is its holder's to retire.
        """
        if request is not None and self._loans.end(request, connection, healthy=False):
            self._record.passed(Kind.POOL_RELEASED, request, connection)
            return False
        grant = self._pool.retire(connection, self._clock.now_ns(), last)
        if request is not None:
            self._record.passed(Kind.POOL_RELEASED, request, connection)
        if not self._pool.standing:
            self._connections.close(connection, in_order=False)
            self._record.closed(connection, Ending.LOST if request is None else Ending.BROKEN)
        self._deliver(grant)
        return self._pool.standing > 0

    def restore(self, connection: int) -> None:
        """A replacement of ``connection`` is open."""
        self._deliver(self._pool.restore(connection, self._clock.now_ns()))

    def limit(self, fewer: int, ports: int | None) -> None:
        """See ``Discipline``: where connections are opened on demand."""
        granted = self._pool.limit(fewer, ports, self._clock.now_ns())
        self._settle()
        for grant in granted:
            self._deliver(grant)

    def has_lent(self, request: int, connection: int) -> bool:
        """Whether it is lent to ``request``, and its holder waits for it."""
        return self._loans.has(request, connection)

    def close(self) -> None:
        """Refuse all who wait and all who come."""
        self._closed = True
        for ticket in self._pool.close(self._clock.now_ns()):
            self._refuse(ticket, Refusal.CLOSED)
        self._opener.close()
        self._settle()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    async def _open_to_join(
        self,
        request: int,
        opening: dict[int, Grant],
        grant: Grant,
        began_ns: int,
        joined: list[int],
    ) -> None:
        """What cannot be opened stays in ``opening``, as it does where this never began."""
        with contextlib.suppress(OpenError):
            await self._opener.open(grant.connection, self._patience_ns)
            del opening[grant.connection]
            self._record.opened(request, grant.connection, began_ns)
            self._joined(request, grant.connection, joined)

    def _not_joined(self, request: int, opening: dict[int, Grant]) -> None:
        for grant in opening.values():
            following = self._pass_on(grant)
            self._record.passed(Kind.POOL_LEFT, request, grant.connection)
            self._deliver(following)

    def _joined(self, request: int, connection: int, joined: list[int]) -> None:
        joined.append(connection)
        self._record.passed(Kind.POOL_JOINED, request, connection)

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
                self._record.refused(request, Refusal.CANCELLED)
            if given and future.exception() is None:
                self._loans.end(request, future.result().connection, healthy=True)
                self._deliver(self._pass_on(future.result()))
            raise
        finally:
            self._waiters.pop(queued.ticket, None)

    async def _opened(self, request: int, grant: Grant, asked_ns: int, patient: bool) -> int:
        """Open what was granted within the time that is left; returns when it was open."""
        began_ns = self._record.opening(request, grant.connection)
        try:
            left_ns = asked_ns + self._patience_ns - began_ns
            await self._opener.open(grant.connection, left_ns, patient)
        except OpenError as error:
            raise self._not_opened(request, grant, error.reason) from error
        except BaseException:
            self._not_opened(request, grant, Refusal.CANCELLED)
            raise
        return self._record.opened(request, grant.connection, began_ns)

    def _not_opened(self, request: int, grant: Grant, reason: Refusal) -> AcquireError:
        refused = self._record.refused(request, reason)
        self._deliver(self._pass_on(grant, last=reason is Refusal.UNANSWERED))
        return refused

    def _pass_on(self, grant: Grant, last: bool = False) -> Grant | None:
        """A grant that nobody uses; returns the next one, if anybody waits."""
        now_ns = self._clock.now_ns()
        if grant.lent:
            return None
        if grant.opens:
            return self._pool.retire(grant.connection, now_ns, last)
        given = self._pool.release(grant.connection, now_ns)
        self._settle()
        return given

    def _deliver(self, grant: Grant | None) -> None:
        while grant is not None:
            _, future = self._waiters[grant.ticket]
            if not future.done():
                future.set_result(grant)
                return
            grant = self._pass_on(grant)  # its task is being cancelled

    def _settle(self) -> None:
        """Close what the rule has given up, and be there when it has something to do next."""
        for closing in self._pool.closings():
            self._connections.close(closing.connection, in_order=True)
            self._record.closed(closing.connection, closing.reason)
        if not self._pool.standing and not self._closed:
            self._set_alarm()

    def _set_alarm(self) -> None:
        deadline_ns = self._pool.next_deadline_ns
        if deadline_ns is None or (self._alarm is not None and self._alarm_ns <= deadline_ns):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        loop = asyncio.get_running_loop()
        self._alarm = loop.call_at(self._clock.loop_time(deadline_ns), self._ring)
        self._alarm_ns = deadline_ns

    def _ring(self) -> None:
        self._alarm = None
        for ticket in self._pool.expire(self._clock.now_ns()):
            self._refuse(ticket, Refusal.TIMEOUT)
        self._settle()
        self._set_alarm()

    def _refuse(self, ticket: int, reason: Refusal) -> None:
        request, future = self._waiters[ticket]
        if not future.done():
            future.set_exception(self._record.refused(request, reason))
