"""All disciplines against lists that do the same slowly, in any interleaving."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from testbed.contract.pool import Order
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
)

PATIENCE_NS = 1_000
IDLE_NS = 700


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
