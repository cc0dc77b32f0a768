"""Waiting at the pool: no wake-up is lost, whoever is cancelled and whenever."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.event import EventLog
from testbed.contract.pool import DisciplineRule, Fifo, Lanes, Lifo, Order, PerTransfer, Pool
from testbed_agents.clock import AgentClock, new_loop
from testbed_agents.pool import AcquireError, Claim, OpenError, PoolGate, Refusal

STANDING = Fifo()


class Ends:
    """Connections that open at once, unless the test says how they fail or wait."""

    def __init__(self) -> None:
        self.fails: dict[int, Refusal] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.open_now: set[int] = set()
        self.closed: list[tuple[int, bool]] = []
        self.aborted: list[int] = []

    async def open(self, connection: int) -> None:
        await self.gate.wait()
        reason = self.fails.pop(connection, None)
        if reason is not None:
            raise OpenError(reason, "md1", "as the test wants it")
        assert connection not in self.open_now
        self.open_now.add(connection)

    def close(self, connection: int, in_order: bool) -> None:
        self.open_now.remove(connection)
        self.closed.append((connection, in_order))

    def abort(self, connection: int) -> None:
        self.aborted.append(connection)


def play(
    scene: Callable[[PoolGate], Awaitable[None]],
    size: int | None = 1,
    timeout_s: float = 20,
    discipline: DisciplineRule = STANDING,
    ends: Ends | None = None,
    order: Order = Order.FIRST_COME,
) -> list[dict[str, object]]:
    """Runs ``scene`` with a fresh gate; returns its events."""
    stream = io.StringIO()

    async def work() -> None:
        clock = AgentClock(time.time_ns())
        log = EventLog(stream, "p1", clock)
        pool = Pool(
            size=size, queue=100, acquire_timeout_ns=int(timeout_s * 1e9),
            transfer_timeout_ns=1, chunk_bytes=1, source_port=2_000,
            discipline=discipline, order=order,
        )  # fmt: skip
        async with asyncio.timeout(20):
            await scene(PoolGate("md1", pool, clock, log, ends or Ends()))
        log.flush()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(work())
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_events_tell_the_state_after_each_step() -> None:
    async def scene(gate: PoolGate) -> None:
        held = await gate.acquire(1)
        waiting = asyncio.create_task(gate.acquire(2))
        await asyncio.sleep(0)
        gate.release(1, held.connection)
        lease = await waiting
        gate.release(2, lease.connection)

    states = [(e["kind"], e["req"], e["busy"], e["waiting"]) for e in play(scene)]
    assert states == [
        ("pool.queued", 1, 1, 0),
        ("pool.acquired", 1, 1, 0),
        ("pool.queued", 2, 1, 1),
        ("pool.released", 1, 1, 0),
        ("pool.acquired", 2, 1, 0),
        ("pool.released", 2, 0, 0),
    ]


def test_a_grant_to_a_cancelled_wait_moves_on_to_the_next() -> None:
    async def scene(gate: PoolGate) -> None:
        held = await gate.acquire(1)
        first = asyncio.create_task(gate.acquire(2))
        second = asyncio.create_task(gate.acquire(3))
        await asyncio.sleep(0)
        gate.release(1, held.connection)  # grants it to 2 ...
        first.cancel()  # ... who is gone before it could run
        assert (await second).connection == held.connection
        assert gate.state.waiting == 0

    play(scene)


def test_closing_refuses_all_who_wait() -> None:
    async def scene(gate: PoolGate) -> None:
        await gate.acquire(1)
        waiting = asyncio.create_task(gate.acquire(2))
        await asyncio.sleep(0)
        gate.close()
        with pytest.raises(AcquireError) as caught:
            await waiting
        assert caught.value.reason is Refusal.CLOSED

    play(scene)


def test_each_wait_has_its_own_deadline() -> None:
    async def scene(gate: PoolGate) -> None:
        await gate.acquire(1)
        results = await asyncio.gather(
            *(gate.acquire(n) for n in (2, 3)), return_exceptions=True
        )  # fmt: skip
        assert [getattr(one, "reason", None) for one in results] == [Refusal.TIMEOUT] * 2

    events = play(scene, timeout_s=0.01)
    queued = {e["req"]: int(str(e["t"])) for e in events if e["kind"] == "pool.queued"}
    refused = {e["req"]: int(str(e["t"])) for e in events if e["kind"] == "pool.refused"}
    assert all(refused[n] - queued[n] > 9_000_000 for n in (2, 3))


@given(st.lists(st.tuples(st.sampled_from("arc"), st.integers(0, 20)), max_size=60))
@settings(max_examples=60, deadline=None)
def test_whatever_is_acquired_released_and_cancelled_everybody_left_is_served(
    script: list[tuple[str, int]],
) -> None:
    async def scene(gate: PoolGate) -> None:
        waits: list[asyncio.Task[object]] = []
        served: list[tuple[int, int]] = []

        async def use(request: int) -> None:
            lease = await gate.acquire(request)
            served.append((request, lease.connection))

        for request, (step, pick) in enumerate(script):
            match step:
                case "a":
                    waits.append(asyncio.create_task(use(request)))
                case "r" if served:
                    gate.release(*served.pop(pick % len(served)))
                case "c" if waits:
                    waits[pick % len(waits)].cancel()
                case _:
                    continue
            if pick % 2:
                await asyncio.sleep(0)
        while not all(task.done() for task in waits):
            await asyncio.sleep(0)
            while served:
                gate.release(*served.pop())
        while served:
            gate.release(*served.pop())
        assert (gate.state.busy, gate.state.waiting) == (0, 0)

    play(scene, size=2)


def test_who_stops_waiting_says_so_before_the_next_is_served() -> None:
    async def scene(gate: PoolGate) -> None:
        held = await gate.acquire(1)
        leaves, stays = (asyncio.create_task(gate.acquire(req)) for req in (2, 3))
        await asyncio.sleep(0)
        leaves.cancel()
        await asyncio.wait([leaves])
        gate.release(1, held.connection)
        gate.release(3, (await stays).connection)

    told = [(e["kind"], e["req"], e.get("reason")) for e in play(scene)]
    assert ("pool.refused", 2, "cancelled") in told
    assert told.index(("pool.refused", 2, "cancelled")) < told.index(("pool.acquired", 3, None))


def test_who_was_granted_and_stops_waiting_says_so_too() -> None:
    async def scene(gate: PoolGate) -> None:
        held = await gate.acquire(1)
        leaves, stays = (asyncio.create_task(gate.acquire(req)) for req in (2, 3))
        await asyncio.sleep(0)
        gate.release(1, held.connection)  # to 2, which has not run since
        leaves.cancel()
        await asyncio.wait([leaves])
        gate.release(3, (await stays).connection)

    told = [(e["kind"], e["req"], e.get("reason")) for e in play(scene)]
    assert ("pool.acquired", 2, None) not in told
    assert told.index(("pool.refused", 2, "cancelled")) < told.index(("pool.acquired", 3, None))


ONE_EACH = PerTransfer(ports=3)
STACK = Lifo(ports=3, idle_timeout_ns=20_000_000)


def kinds(events: list[dict[str, object]]) -> list[object]:
    return [event["kind"] for event in events]


def test_standing_connections_leave_no_events_of_their_own() -> None:
    async def scene(gate: PoolGate) -> None:
        lease = await gate.acquire(1)
        gate.retire(lease.connection, 1)
        gate.restore(lease.connection)
        gate.close()

    assert kinds(play(scene)) == ["pool.queued", "pool.acquired", "pool.released"]


def test_a_connection_on_demand_is_opened_before_it_is_acquired_and_closed_behind() -> None:
    ends = Ends()

    async def scene(gate: PoolGate) -> None:
        for request in (1, 2):
            lease = await gate.acquire(request)
            assert ends.open_now == {lease.connection}
            gate.release(request, lease.connection)
        assert ends.closed == [(0, True), (1, True)]

    events = play(scene, None, discipline=ONE_EACH, ends=ends)
    one = [
        "pool.queued", "connection.opening", "connection.opened", "pool.acquired",
        "pool.released", "connection.closed",
    ]  # fmt: skip
    assert kinds(events) == one * 2
    assert [e["open"] for e in events if e["kind"] == "connection.opened"] == [1, 1]
    closed = [(e["reason"], e["open"]) for e in events if e["kind"] == "connection.closed"]
    assert closed == [("after-use", 0)] * 2


def test_the_time_to_open_is_a_part_of_the_wait() -> None:
    ends = Ends()

    async def scene(gate: PoolGate) -> None:
        ends.gate.clear()
        waiting = asyncio.create_task(gate.acquire(1))
        asyncio.get_running_loop().call_later(0.01, ends.gate.set)
        lease = await waiting
        assert lease.wait_ns >= 9_000_000

    events = {e["kind"]: e for e in play(scene, None, discipline=ONE_EACH, ends=ends)}
    queued, acquired = (int(str(events[f"pool.{end}"]["t"])) for end in ("queued", "acquired"))
    assert abs(acquired - queued - int(str(events["pool.acquired"]["wait_ns"]))) < 1_000_000
    assert int(str(events["connection.opened"]["took_ns"])) >= 9_000_000


@pytest.mark.parametrize(
    "reason", [Refusal.NO_PORT, Refusal.NO_DESCRIPTOR, Refusal.REFUSED, Refusal.UNREACHABLE]
)
def test_what_cannot_be_opened_is_refused_by_name_and_the_next_gets_its_turn(
    reason: Refusal,
) -> None:
    ends = Ends()
    ends.fails = {0: reason}

    async def scene(gate: PoolGate) -> None:
        ends.gate.clear()
        first, second = (asyncio.create_task(gate.acquire(req)) for req in (1, 2))
        await asyncio.sleep(0)
        ends.gate.set()
        with pytest.raises(AcquireError, match=reason.value) as caught:
            await first
        assert caught.value.reason is reason
        assert (await second).connection == 0
        assert (gate.state.busy, gate.state.waiting) == (1, 0)

    events = play(scene, 1, discipline=ONE_EACH, ends=ends)
    assert [e["reason"] for e in events if e["kind"] == "pool.refused"] == [reason.value]
    assert "connection.closed" not in kinds(events)


def test_opening_ends_with_the_time_to_wait() -> None:
    ends = Ends()

    async def scene(gate: PoolGate) -> None:
        ends.gate.clear()
        with pytest.raises(AcquireError) as caught:
            await gate.acquire(1)
        assert caught.value.reason is Refusal.TIMEOUT
        assert gate.state.busy == 0

    play(scene, None, timeout_s=0.01, discipline=ONE_EACH, ends=ends)


def test_who_leaves_while_a_connection_opens_takes_nothing_with_it() -> None:
    ends = Ends()

    async def scene(gate: PoolGate) -> None:
        ends.gate.clear()
        leaves, stays = (asyncio.create_task(gate.acquire(req)) for req in (1, 2))
        await asyncio.sleep(0)
        leaves.cancel()
        ends.gate.set()
        assert (await stays).connection == 0
        assert leaves.cancelled()

    events = play(scene, 1, discipline=ONE_EACH, ends=ends)
    refused = [(e["req"], e["reason"]) for e in events if e["kind"] == "pool.refused"]
    assert refused == [(1, "cancelled")]


@pytest.mark.parametrize("answers", [True, False])
def test_a_pool_that_is_closed_while_one_opens_does_not_use_or_await_it(answers: bool) -> None:
    ends = Ends()

    async def scene(gate: PoolGate) -> None:
        ends.gate.clear()
        opening = asyncio.create_task(gate.acquire(1))
        await asyncio.sleep(0)
        gate.close()
        if answers:
            ends.gate.set()
        with pytest.raises(AcquireError) as caught:
            await opening
        assert caught.value.reason is Refusal.CLOSED
        assert ends.open_now == set()
        assert gate._opener.under_way == 0

    events = play(scene, None, discipline=ONE_EACH, ends=ends)
    assert [e["reason"] for e in events if e["kind"] == "pool.refused"] == ["closed"]


def test_what_is_idle_for_long_is_closed_and_what_is_lost_says_so() -> None:
    ends = Ends()

    async def scene(gate: PoolGate) -> None:
        leases = [await gate.acquire(request) for request in range(3)]
        for request, lease in enumerate(leases):
            gate.release(request, lease.connection)
        gate.retire(1)  # the receiver closed it
        again = await gate.acquire(3)
        assert again.connection == 2
        while gate.state.idle:
            await asyncio.sleep(0)
        gate.retire(again.connection, 3)
        assert ends.open_now == set()
        gate.close()

    events = play(scene, None, discipline=STACK, ends=ends)
    closed = [(e["conn"], e["reason"], e["open"]) for e in events if "closed" in str(e["kind"])]
    assert closed == [(1, "lost", 2), (0, "idle", 1), (2, "broken", 0)]


def test_closing_the_pool_closes_what_is_idle() -> None:
    ends = Ends()

    async def scene(gate: PoolGate) -> None:
        lease = await gate.acquire(1)
        gate.release(1, lease.connection)
        gate.close()
        assert ends.closed == [(0, True)]

    events = play(scene, 1, discipline=Lanes(), ends=ends)
    assert events[-1]["kind"] == "connection.closed"
    assert events[-1]["reason"] == "closed"


def test_a_short_wait_is_not_overslept_behind_a_long_idle_time() -> None:
    async def scene(gate: PoolGate) -> None:
        lease = await gate.acquire(1)
        gate.release(1, lease.connection)
        await gate.acquire(2)
        with pytest.raises(AcquireError) as caught:
            await gate.acquire(3)
        assert caught.value.reason is Refusal.TIMEOUT

    play(scene, 1, timeout_s=0.01, discipline=Lifo(ports=1, idle_timeout_ns=60 * 10**9))


@given(
    st.sampled_from([ONE_EACH, STACK, Lanes()]),
    st.lists(st.tuples(st.sampled_from("arxcf"), st.integers(0, 20)), max_size=60),
)
@settings(max_examples=100, deadline=None)
def test_on_demand_nothing_leaks_whoever_comes_fails_or_leaves(
    discipline: DisciplineRule, script: list[tuple[str, int]]
) -> None:
    ends = Ends()

    async def scene(gate: PoolGate) -> None:
        waits: list[asyncio.Task[None]] = []
        served: list[tuple[int, int]] = []

        async def use(request: int) -> None:
            lease = await gate.acquire(request)
            assert lease.connection in ends.open_now
            served.append((request, lease.connection))

        for request, (step, pick) in enumerate(script):
            match step:
                case "a":
                    waits.append(asyncio.create_task(use(request)))
                case "r" if served:
                    gate.release(*served.pop(pick % len(served)))
                case "x" if served:
                    broken, connection = served.pop(pick % len(served))
                    gate.retire(connection, broken)
                case "c" if waits:
                    waits[pick % len(waits)].cancel()
                case "f":
                    ends.fails = {pick % 2: Refusal.REFUSED} if pick % 3 else {}
                case _:
                    continue
            if pick % 2:
                await asyncio.sleep(0)
        while not all(task.done() for task in waits):
            await asyncio.sleep(0)
            while served:
                gate.release(*served.pop())
        while served:
            gate.release(*served.pop())
        assert (gate.state.busy, gate.state.waiting) == (0, 0)
        gate.close()
        assert (gate.state.idle, ends.open_now) == (0, set())
        for task in waits:
            if not task.cancelled() and (error := task.exception()) is not None:
                assert isinstance(error, AcquireError)

    events = play(scene, 2, discipline=discipline, ends=ends)
    opened = kinds(events).count("connection.opened")
    assert opened == kinds(events).count("connection.closed") == len(ends.closed)
    assert [e["open"] for e in events if "open" in e][-1:] in ([], [0])


def told_of(events: list[dict[str, object]], req: int) -> list[tuple[object, object]]:
    return [(e["kind"], e["conn"]) for e in events if e.get("req") == req and "conn" in e]


def test_more_connections_are_joined_while_nobody_waits_and_left_again() -> None:
    async def scene(gate: PoolGate) -> None:
        lease = await gate.acquire(1)
        assert await gate.join(1, 1) == (1,)
        assert await gate.join(1, 9) == (2,)
        waiting = asyncio.create_task(gate.acquire(2))
        await asyncio.sleep(0)
        gate.leave(1, 1, healthy=True)
        assert (await waiting).connection == 1
        gate.leave(1, 2, healthy=False)
        assert await gate.join(1, 9) == ()
        gate.release(1, lease.connection)
        assert (gate.state.busy, gate.state.broken) == (1, 1)

    events = play(scene, 3)
    assert told_of(events, 1) == [
        ("pool.acquired", 0), ("pool.joined", 1), ("pool.joined", 2), ("pool.left", 1),
        ("pool.left", 2), ("pool.released", 0),
    ]  # fmt: skip


class DefectError(Exception):
    """What no network does."""


@pytest.mark.parametrize("cancelled", [True, False])
def test_joining_that_is_cut_short_leaves_nothing_behind(cancelled: bool) -> None:
    class Broken(Ends):
        async def open(self, connection: int) -> None:
            if connection == 1 and not cancelled:
                raise DefectError
            await super().open(connection)

    ends = Broken()

    async def scene(gate: PoolGate) -> None:
        lease = await gate.acquire(1)
        if cancelled:
            ends.gate.clear()
        joining = asyncio.create_task(gate.join(1, 2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if cancelled:
            joining.cancel()
        with pytest.raises(asyncio.CancelledError if cancelled else DefectError):
            await joining
        assert gate.state.busy == 1
        gate.release(1, lease.connection)
        assert (gate.state.busy, ends.open_now) == (0, set())

    events = play(scene, None, discipline=ONE_EACH, ends=ends)
    opening = [conn for kind, conn in told_of(events, 1) if kind == "connection.opening"]
    left = [conn for kind, conn in told_of(events, 1) if kind == "pool.left"]
    assert opening == [0, 1, 2]
    assert sorted(map(str, left)) == ["1", "2"]


@pytest.mark.parametrize("healthy", [True, False])
def test_a_connection_is_lent_to_all_that_come_before_while_it_is_of_use(healthy: bool) -> None:
    ends = Ends()

    async def scene(gate: PoolGate) -> None:
        lease = await gate.acquire(1)
        sizes = {2: 30, 3: 10, 4: 20}
        waits = {
            req: asyncio.create_task(gate.acquire(req, Claim(size))) for req, size in sizes.items()
        }
        await asyncio.sleep(0)
        lending = asyncio.create_task(gate.lend(1, lease.connection, Claim(25)))
        for req in (3, 4) if healthy else (3,):
            lent = await waits.pop(req)
            assert lent.lent
            assert not lending.done()
            if healthy:
                gate.release(req, lent.connection)
            else:
                assert not gate.retire(lent.connection, req)
        await lending
        assert ends.aborted == ([] if healthy else [0])
        assert not any(task.done() for task in waits.values())
        gate.retire(lease.connection, 1)
        gate.close()
        await asyncio.gather(*waits.values(), return_exceptions=True)

    events = play(scene, 1, ends=ends, order=Order.SMALLEST_FIRST)
    lent = [e["req"] for e in events if e["kind"] == "pool.acquired"]
    assert lent == ([1, 3, 4] if healthy else [1, 3])
    pairs = [e["kind"] for e in events if e["kind"] in ("pool.suspended", "pool.resumed")]
    assert pairs == ["pool.suspended", "pool.resumed"] * (len(lent) - 1)


def test_a_loan_to_who_is_being_cancelled_goes_to_the_next() -> None:
    async def scene(gate: PoolGate) -> None:
        lease = await gate.acquire(1)
        leaves, stays = (asyncio.create_task(gate.acquire(req, Claim(req))) for req in (2, 3))
        await asyncio.sleep(0)
        lending = asyncio.create_task(gate.lend(1, lease.connection, Claim(9)))
        await asyncio.sleep(0)  # it is lent to 2 ...
        leaves.cancel()  # ... who is gone before it could run
        lent = await stays
        gate.release(3, lent.connection)
        await lending
        gate.release(1, lease.connection)
        assert (gate.state.busy, len(gate._loans)) == (0, 0)

    play(scene, 1, order=Order.SMALLEST_FIRST)
