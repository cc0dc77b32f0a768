"""Waiting at the pool: no wake-up is lost, whoever is cancelled and whenever."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed_agents.pool import AcquireError, PoolGate, Refusal
from tests.fakes.pool_gate import kinds, play


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


def test_standing_connections_leave_no_events_of_their_own() -> None:
    async def scene(gate: PoolGate) -> None:
        lease = await gate.acquire(1)
        gate.retire(lease.connection, 1)
        gate.restore(lease.connection)
        gate.close()

    assert kinds(play(scene)) == ["pool.queued", "pool.acquired", "pool.released"]
