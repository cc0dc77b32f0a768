"""Connections that the pool opens on demand: what they are for, and that none is left over."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.pool import DisciplineRule, Lanes, Lifo
from testbed_agents.pool import AcquireError, PoolGate, Refusal
from tests.fakes.pool_gate import ONE_EACH, STACK, Ends, kinds, play


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
