"""Pools that open on demand: against lists that do the same slowly, in any interleaving."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from testbed.contract.pool import Fifo, Lanes, Lifo, Order, PerTransfer, Pool
from testbed_agents.pool import (
    Claim,
    Closing,
    Discipline,
    Ending,
    FifoPool,
    Grant,
    LanesPool,
    LifoPool,
    Line,
    PerTransferPool,
    Queued,
    Refusal,
    discipline_of,
)

PATIENCE_NS = 1_000
IDLE_NS = 700


def granted(outcome: Grant | Queued | Refusal | None) -> Grant:
    assert isinstance(outcome, Grant)
    return outcome


def line(most: int = 4) -> Line:
    return Line(most, PATIENCE_NS)


def test_each_transfer_has_a_fresh_connection_and_ports_are_taken_in_turn() -> None:
    pool = PerTransferPool(None, 3, line())
    seen = []
    for now_ns in range(5):
        grant = granted(pool.request(now_ns))
        assert grant.opens
        assert pool.release(grant.connection, now_ns) is None
        assert pool.closings() == (Closing(grant.connection, Ending.AFTER_USE),)
        seen.append(grant.connection)
    assert seen == [0, 1, 2, 0, 1]


def test_a_port_that_was_never_used_is_the_next_again() -> None:
    pool = PerTransferPool(None, 3, line())
    failed = granted(pool.request(0))
    assert pool.retire(failed.connection, 0) is None
    assert granted(pool.request(1)).connection == failed.connection
    assert pool.closings() == ()


def test_without_a_bound_nobody_waits_and_no_port_is_named() -> None:
    pool = PerTransferPool(None, 2, line())
    granted(pool.request(0))
    granted(pool.request(0))
    assert pool.request(0) is Refusal.NO_PORT


def test_with_a_bound_the_next_gets_a_fresh_one_too() -> None:
    pool = PerTransferPool(1, 3, line())
    held = granted(pool.request(0))
    waiting = pool.request(1)
    assert isinstance(waiting, Queued)
    assert pool.release(held.connection, 5) == Grant(waiting.ticket, 1, 4, opens=True)


def test_the_connection_used_last_goes_first() -> None:
    pool = LifoPool(None, 9, line(), IDLE_NS)
    first, second = granted(pool.request(0)), granted(pool.request(0))
    pool.release(first.connection, 1)
    pool.release(second.connection, 2)
    again = granted(pool.request(3))
    assert (again.connection, again.opens) == (second.connection, False)


def test_what_stays_idle_is_closed_and_what_is_used_is_not() -> None:
    pool = LifoPool(None, 9, line(), IDLE_NS)
    held = [granted(pool.request(0)).connection for _ in range(4)]
    for connection in held:
        pool.release(connection, 10)
    busy = granted(pool.request(20)).connection
    assert pool.next_deadline_ns == 10 + IDLE_NS
    assert pool.expire(9 + IDLE_NS) == ()
    assert pool.closings() == ()
    pool.expire(10 + IDLE_NS)
    assert pool.closings() == tuple(Closing(one, Ending.IDLE) for one in held if one != busy)
    assert (pool.idle, pool.busy, pool.next_deadline_ns) == (0, 1, None)


def test_few_lanes_are_used_where_few_are_needed() -> None:
    pool = LanesPool(4, line())
    held = [granted(pool.request(0)).connection for _ in range(3)]
    assert held == [0, 1, 2]
    for connection in reversed(held):
        pool.release(connection, 1)
    assert [granted(pool.request(2)).connection for _ in range(2)] == [0, 1]


def test_a_lane_that_broke_is_opened_anew_for_whose_turn_it_is() -> None:
    pool = LanesPool(1, line())
    held = granted(pool.request(0))
    waiting = pool.request(0)
    assert isinstance(waiting, Queued)
    assert pool.retire(held.connection, 7) == Grant(waiting.ticket, 0, 7, opens=True)


def test_closing_gives_up_what_is_idle_at_once_and_what_is_busy_later() -> None:
    pool = LifoPool(2, 9, line(), IDLE_NS)
    first, second = granted(pool.request(0)), granted(pool.request(0))
    waiting = pool.request(0)
    assert isinstance(waiting, Queued)
    pool.cancel(waiting.ticket, 0)
    pool.release(first.connection, 1)
    assert pool.close(2) == ()
    assert pool.closings() == (Closing(first.connection, Ending.CLOSED),)
    assert pool.request(3) is Refusal.CLOSED
    pool.release(second.connection, 4)
    assert pool.closings() == (Closing(second.connection, Ending.CLOSED),)


def test_misuse_is_an_error() -> None:
    pool = LifoPool(2, 9, line(), IDLE_NS)
    held = granted(pool.request(10)).connection
    with pytest.raises(ValueError, match="not busy"):
        pool.release(held + 1, 11)
    with pytest.raises(ValueError, match="not broken"):
        pool.restore(held, 11)
    pool.retire(held, 11)
    with pytest.raises(ValueError, match="neither busy nor idle"):
        pool.retire(held, 11)
    with pytest.raises(ValueError, match="backwards"):
        pool.request(9)
    with pytest.raises(ValueError, match="size <= ports"):
        PerTransferPool(4, 3, line())
    with pytest.raises(ValueError, match="idle_timeout_ns"):
        LifoPool(None, 3, line(), 0)


@pytest.mark.parametrize(
    ("kind", "rule", "size", "standing"),
    [
        (Fifo(), FifoPool, 3, 3),
        (Lanes(), LanesPool, 3, 0),
        (PerTransfer(ports=5), PerTransferPool, None, 0),
        (Lifo(ports=5, idle_timeout_ns=9), LifoPool, 2, 0),
    ],
)
def test_the_plan_chooses_the_rule(
    kind: Fifo | Lanes | PerTransfer | Lifo, rule: type, size: int | None, standing: int
) -> None:
    pool = Pool(
        size=size, queue=2, acquire_timeout_ns=9, transfer_timeout_ns=9, chunk_bytes=1,
        source_port=2_000, discipline=kind,
    )  # fmt: skip
    chosen = discipline_of(pool)
    assert type(chosen) is rule
    assert chosen.standing == standing
    assert pool.most == (size or 5)
    assert pool.numbers == getattr(kind, "ports", size)


def test_a_pool_that_cannot_be_is_refused_and_the_default_is_not_written() -> None:
    values = {
        "queue": 2, "acquire_timeout_ns": 9, "transfer_timeout_ns": 9, "chunk_bytes": 1,
        "source_port": 2_000,
    }  # fmt: skip
    with pytest.raises(ValueError, match="of kind lanes needs a size"):
        Pool.model_validate({**values, "size": None, "discipline": Lanes()})
    with pytest.raises(ValueError, match="3 source ports cannot hold 4"):
        Pool.model_validate({**values, "size": 4, "discipline": PerTransfer(ports=3)})
    pool = Pool.model_validate({**values, "size": 4})
    assert pool.model_dump(mode="json") == {"size": 4, **values}
    lanes = Pool.model_validate({**values, "size": 4, "discipline": Lanes()})
    assert Pool.model_validate_json(lanes.model_dump_json()) == lanes


@dataclass
class Waiter:
    """One who waits, as the model sees it."""

    ticket: int
    since_ns: int
    key: tuple[int, int]


class DisciplineMachine(RuleBasedStateMachine):
    """Any mixture of calls on any discipline, with any order, against plain lists."""

    KINDS = ("fifo", "per-transfer", "lifo", "lanes")

    @initialize(
        kind=st.sampled_from(KINDS), size=st.sampled_from([None, 1, 2, 3]),
        spare=st.integers(0, 2), order=st.sampled_from(Order), queue=st.integers(0, 4),
    )  # fmt: skip
    def begin(self, kind: str, size: int | None, spare: int, order: Order, queue: int) -> None:
        self.kind, self.order, self.queue = kind, order, queue
        self.size = 2 if size is None and kind in ("fifo", "lanes") else size
        self.ports = (self.size or 2) + (spare if kind in ("per-transfer", "lifo") else 0)
        line = Line(queue, PATIENCE_NS, order)
        self.pool: Discipline
        match kind:
            case "fifo":
                self.pool = FifoPool(self.size or 0, queue, PATIENCE_NS, order)
            case "per-transfer":
                self.pool = PerTransferPool(self.size, self.ports, line)
            case "lifo":
                self.pool = LifoPool(self.size, self.ports, line, IDLE_NS)
            case _:
                self.pool = LanesPool(self.size or 0, line)
        self.most = self.size or self.ports
        self.now_ns = 0
        self.shut = False
        self.waiters: list[Waiter] = []
        self.held: list[int] = []
        self.broken: list[int] = []
        self.idle: list[tuple[int, int]] = []  # (connection, since), oldest first
        if kind == "fifo":
            self.idle = [(connection, 0) for connection in range(self.most)]

    def chosen(self) -> int | None:
        """The idle connection that should be next."""
        match self.kind:
            case "fifo":
                return self.idle[0][0]
            case "lifo":
                return self.idle[-1][0]
            case _:
                return min(connection for connection, _ in self.idle)

    def take(self, grant: Grant) -> None:
        """A grant is of a connection that nobody has, the right one, or a fresh one."""
        assert grant.connection not in self.held
        assert grant.connection not in self.broken
        assert 0 <= grant.connection < self.ports
        open_now = [connection for connection, _ in self.idle]
        assert grant.opens == (not self.idle)
        if self.idle:
            assert grant.connection == self.chosen()
            self.idle = [one for one in self.idle if one[0] != grant.connection]
        else:
            assert grant.connection not in open_now
        self.held.append(grant.connection)
        assert len(self.held) <= self.most

    def settle(self, grant: Grant | None, closed: list[tuple[int, Ending]]) -> None:
        """What a call gave: the right one served, and exactly these connections given up."""
        assert self.pool.closings() == tuple(Closing(*one) for one in closed)
        room = bool(self.idle) or (self.kind != "fifo" and len(self.held) < self.most)
        if not self.waiters or not room:
            assert grant is None
            return
        assert grant is not None, "a wake-up was lost"
        first = min(self.waiters, key=lambda one: one.key)
        assert (grant.ticket, grant.wait_ns) == (first.ticket, self.now_ns - first.since_ns)
        self.waiters.remove(first)
        self.take(grant)

    @rule(step=st.integers(0, 400))
    def time_passes(self, step: int) -> None:
        self.now_ns += step
        late = [one for one in self.waiters if one.since_ns + PATIENCE_NS <= self.now_ns]
        assert self.pool.expire(self.now_ns) == tuple(one.ticket for one in late)
        self.waiters = [one for one in self.waiters if one not in late]
        old = [one for one in self.idle if self.kind == "lifo" and one[1] + IDLE_NS <= self.now_ns]
        self.idle = [one for one in self.idle if one not in old]
        assert self.pool.closings() == tuple(Closing(one[0], Ending.IDLE) for one in old)

    @rule(size=st.integers(0, 3), due_ns=st.none() | st.integers(0, 2_000))
    def ask(self, size: int, due_ns: int | None) -> None:
        room = bool(self.idle) or (self.kind != "fifo" and len(self.held) < self.most)
        match self.pool.request(self.now_ns, Claim(size, due_ns)):
            case Grant() as grant:
                assert not self.waiters
                assert grant.wait_ns == 0
                self.take(grant)
            case Queued(ticket, deadline_ns):
                assert not room
                assert len(self.waiters) < self.queue
                assert deadline_ns == self.now_ns + PATIENCE_NS
                keys = {
                    Order.FIRST_COME: ticket,
                    Order.SMALLEST_FIRST: size,
                    Order.EARLIEST_DEADLINE: self.now_ns if due_ns is None else due_ns,
                }
                self.waiters.append(Waiter(ticket, self.now_ns, (keys[self.order], ticket)))
            case refusal:
                wanted = Refusal.QUEUE_FULL if self.size is not None else Refusal.NO_PORT
                assert refusal is (Refusal.CLOSED if self.shut else wanted)
                assert self.shut or not room

    @rule()
    def spare(self) -> None:
        room = bool(self.idle) or (self.kind != "fifo" and len(self.held) < self.most)
        grant = self.pool.spare(self.now_ns)
        if grant is None:
            assert self.shut or self.waiters or not room
        else:
            assert not self.shut
            assert not self.waiters
            self.take(grant)

    @precondition(lambda self: self.held)
    @rule(pick=st.integers(0, 10), size=st.integers(0, 3), due_ns=st.integers(0, 2_000))
    def lend(self, pick: int, size: int, due_ns: int) -> None:
        connection = self.held[pick % len(self.held)]
        grant = self.pool.lend(connection, Claim(size, due_ns), self.now_ns)
        own = {Order.SMALLEST_FIRST: size, Order.EARLIEST_DEADLINE: due_ns}.get(self.order, -1)
        first = min(self.waiters, key=lambda one: one.key, default=None)
        if first is None or first.key[0] >= own:
            assert grant is None
            return
        wait_ns = self.now_ns - first.since_ns
        assert grant == Grant(first.ticket, connection, wait_ns, lent=True)
        self.waiters.remove(first)

    @precondition(lambda self: self.held)
    @rule(pick=st.integers(0, 10))
    def release(self, pick: int) -> None:
        connection = self.held.pop(pick % len(self.held))
        grant = self.pool.release(connection, self.now_ns)
        if self.kind != "fifo" and self.shut:
            self.settle(grant, [(connection, Ending.CLOSED)])
        elif self.kind == "per-transfer":
            self.settle(grant, [(connection, Ending.AFTER_USE)])
        else:
            self.idle.append((connection, self.now_ns))
            self.settle(grant, [])

    @precondition(lambda self: self.held or self.idle)
    @rule(pick=st.integers(0, 10), idle=st.booleans())
    def retire(self, pick: int, idle: bool) -> None:
        if self.idle and (idle or not self.held):
            connection, _ = self.idle.pop(pick % len(self.idle))
        else:
            connection = self.held.pop(pick % len(self.held))
        grant = self.pool.retire(connection, self.now_ns)
        if self.kind == "fifo":
            self.broken.append(connection)
            assert grant is None
        else:
            self.settle(grant, [])

    @precondition(lambda self: self.broken)
    @rule()
    def restore(self) -> None:
        connection = self.broken.pop()
        grant = self.pool.restore(connection, self.now_ns)
        self.idle.append((connection, self.now_ns))
        self.settle(grant, [])

    @precondition(lambda self: self.waiters)
    @rule(pick=st.integers(0, 10))
    def cancel(self, pick: int) -> None:
        left = self.waiters.pop(pick % len(self.waiters))
        assert self.pool.cancel(left.ticket, self.now_ns)
        assert not self.pool.cancel(left.ticket, self.now_ns)

    @precondition(lambda self: not self.shut and self.now_ns > 2_000)
    @rule()
    def close(self) -> None:
        assert self.pool.close(self.now_ns) == tuple(one.ticket for one in self.waiters)
        self.waiters, self.shut = [], True
        if self.kind != "fifo":
            closed = tuple(Closing(one[0], Ending.CLOSED) for one in self.idle)
            assert self.pool.closings() == closed
            self.idle = []

    @invariant()
    def counts_agree(self) -> None:
        if not hasattr(self, "pool"):
            return
        assert self.pool.busy == len(self.held) == len(set(self.held)) <= self.most
        assert self.pool.idle == len(self.idle)
        assert self.pool.broken == len(self.broken)
        assert self.pool.waiting == len(self.waiters) <= self.queue
        assert all(self.pool.is_idle(connection) for connection, _ in self.idle)
        assert not any(self.pool.is_idle(connection) for connection in self.held)
        ends = [one.since_ns + PATIENCE_NS for one in self.waiters[:1]]
        ends += [since_ns + IDLE_NS for _, since_ns in self.idle[:1] if self.kind == "lifo"]
        assert self.pool.next_deadline_ns == min(ends, default=None)

    @invariant()
    def every_number_is_somewhere_once(self) -> None:
        free = getattr(getattr(self, "pool", None), "_free", None)
        if free is not None:
            used = [*self.held, *(connection for connection, _ in self.idle)]
            assert sorted([*free, *used]) == list(range(self.ports))


TestDisciplineMachine = DisciplineMachine.TestCase
TestDisciplineMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
