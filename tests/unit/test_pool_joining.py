"""More than one connection for a transfer, and one for more than one: joined, lent, given back."""

from __future__ import annotations

import asyncio

import pytest

from testbed.contract.pool import Order
from testbed_agents.pool import Claim, PoolGate
from tests.fakes.pool_gate import ONE_EACH, Ends, play, told_of


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
