"""The pool's rule: first come, first served; never more than N; nobody is forgotten."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from testbed_agents.pool import FifoPool, Grant, Queued, Refusal

TIMEOUT_NS = 1_000


def granted(outcome: Grant | Queued | Refusal | None) -> Grant:
    assert isinstance(outcome, Grant)
    return outcome


def test_connections_are_given_out_longest_idle_first() -> None:
    pool = FifoPool(2, 0, TIMEOUT_NS)
    first, second = granted(pool.request(0)), granted(pool.request(0))
    pool.release(second.connection, 1)
    pool.release(first.connection, 2)
    assert granted(pool.request(3)).connection == second.connection
    assert granted(pool.request(3)).connection == first.connection


def test_the_queue_is_bounded() -> None:
    pool = FifoPool(1, 1, TIMEOUT_NS)
    granted(pool.request(0))
    assert isinstance(pool.request(0), Queued)
    assert pool.request(0) is Refusal.QUEUE_FULL


def test_a_release_serves_the_oldest_and_tells_its_wait() -> None:
    pool = FifoPool(1, 2, TIMEOUT_NS)
    held = granted(pool.request(0))
    older, newer = pool.request(10), pool.request(20)
    assert isinstance(older, Queued)
    assert isinstance(newer, Queued)
    assert pool.release(held.connection, 100) == Grant(older.ticket, held.connection, 90)
    assert pool.release(held.connection, 150) == Grant(newer.ticket, held.connection, 130)


def test_a_wait_ends_exactly_at_its_deadline() -> None:
    pool = FifoPool(1, 2, TIMEOUT_NS)
    granted(pool.request(0))
    queued = pool.request(5)
    assert isinstance(queued, Queued)
    assert pool.next_deadline_ns == queued.deadline_ns == 5 + TIMEOUT_NS
    assert pool.expire(queued.deadline_ns - 1) == ()
    assert pool.expire(queued.deadline_ns) == (queued.ticket,)
    assert pool.waiting == 0


def test_a_broken_connection_serves_nobody_until_restored() -> None:
    pool = FifoPool(1, 1, TIMEOUT_NS)
    held = granted(pool.request(0))
    waiting = pool.request(0)
    assert isinstance(waiting, Queued)
    pool.retire(held.connection, 1)
    assert (pool.busy, pool.broken, pool.waiting) == (0, 1, 1)
    assert pool.restore(held.connection, 2) == Grant(waiting.ticket, held.connection, 2)


def test_the_integrals_count_connection_time_and_exhaustion() -> None:
    pool = FifoPool(2, 5, TIMEOUT_NS)
    first, _second = granted(pool.request(0)), granted(pool.request(10))
    pool.request(30)
    assert pool.exhausted_ns(40) == 10
    pool.release(first.connection, 50)
    assert pool.exhausted_ns(100) == 20
    assert pool.busy_ns(100) == 10 * 1 + 90 * 2


def test_closing_refuses_who_waits_and_who_comes() -> None:
    pool = FifoPool(1, 1, TIMEOUT_NS)
    granted(pool.request(0))
    waiting = pool.request(0)
    assert isinstance(waiting, Queued)
    assert pool.close(1) == (waiting.ticket,)
    assert pool.request(2) is Refusal.CLOSED


def test_misuse_is_an_error() -> None:
    pool = FifoPool(2, 0, TIMEOUT_NS)
    held = granted(pool.request(10)).connection
    with pytest.raises(ValueError, match="not busy"):
        pool.release(1 - held, 11)
    with pytest.raises(ValueError, match="not broken"):
        pool.restore(held, 11)
    pool.retire(held, 11)
    with pytest.raises(ValueError, match="neither busy nor idle"):
        pool.retire(held, 11)
    with pytest.raises(ValueError, match="backwards"):
        pool.request(9)


class PoolMachine(RuleBasedStateMachine):
    """Any mixture of calls against a plain list that does the same, slowly."""

    SIZE = 3
    QUEUE = 4

    def __init__(self) -> None:
        super().__init__()
        self.pool = FifoPool(self.SIZE, self.QUEUE, TIMEOUT_NS)
        self.now_ns = 0
        self.line: list[Queued] = []
        self.held: list[int] = []
        self.broken: list[int] = []

    def _granted(self, grant: Grant | None) -> None:
        idle = self.SIZE - len(self.held) - len(self.broken)
        if idle and self.line:
            assert grant is not None, "a wake-up was lost"
            assert grant.ticket == self.line.pop(0).ticket, "somebody overtook"
            self.held.append(grant.connection)
        else:
            assert grant is None

    @rule(step=st.integers(0, 400))
    def time_passes(self, step: int) -> None:
        self.now_ns += step
        late = [one for one in self.line if one.deadline_ns <= self.now_ns]
        assert self.pool.expire(self.now_ns) == tuple(one.ticket for one in late)
        self.line = [one for one in self.line if one not in late]

    @rule()
    def ask(self) -> None:
        idle = self.SIZE - len(self.held) - len(self.broken)
        match self.pool.request(self.now_ns):
            case Grant(connection=connection):
                assert idle > 0
                assert not self.line
                assert connection not in self.held
                self.held.append(connection)
            case Queued() as queued:
                assert idle == 0
                assert len(self.line) < self.QUEUE
                self.line.append(queued)
            case refusal:
                assert refusal is Refusal.QUEUE_FULL
                assert len(self.line) == self.QUEUE

    @rule(pick=st.integers(0, 10))
    def release(self, pick: int) -> None:
        if self.held:
            connection = self.held.pop(pick % len(self.held))
            self._granted(self.pool.release(connection, self.now_ns))

    @rule(pick=st.integers(0, 10))
    def retire(self, pick: int) -> None:
        if self.held:
            connection = self.held.pop(pick % len(self.held))
            self.broken.append(connection)
            self.pool.retire(connection, self.now_ns)

    @rule()
    def restore(self) -> None:
        if self.broken:
            self._granted(self.pool.restore(self.broken.pop(), self.now_ns))

    @rule(pick=st.integers(0, 10))
    def cancel(self, pick: int) -> None:
        if self.line:
            queued = self.line.pop(pick % len(self.line))
            assert self.pool.cancel(queued.ticket, self.now_ns)
            assert not self.pool.cancel(queued.ticket, self.now_ns)

    @invariant()
    def counts_agree(self) -> None:
        assert self.pool.busy == len(self.held) <= self.SIZE
        assert self.pool.broken == len(self.broken)
        assert self.pool.waiting == len(self.line) <= self.QUEUE


TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = settings(max_examples=60, deadline=None)
