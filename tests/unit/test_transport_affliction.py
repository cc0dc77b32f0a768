"""What a pool suffers on purpose, over loopback: what comes of it, and what is well again."""

from __future__ import annotations

import asyncio

import pytest

from testbed.contract.pool import Lifo, PerTransfer
from testbed_agents.pool import AcquireError
from testbed_agents.transport import TransferError
from tests.fakes.kv_pair import Pair, run, transfer

pytestmark = pytest.mark.unit


async def until(pair: Pair, side: int, kind: str, count: int = 1) -> None:
    """The record of one side has so many events of a kind."""
    async with asyncio.timeout(10):
        while len(pair.events(side, kind)) < count:
            await asyncio.sleep(0)


async def reopened(pair: Pair, idle: int) -> None:
    async with asyncio.timeout(10):
        while pair.sender._gate.state.idle < idle:
            await asyncio.sleep(0)


def test_a_pool_that_shrank_has_fewer_connections_and_then_all_again() -> None:
    async def scene(pair: Pair) -> None:
        state = pair.sender._gate.state
        pair.gate.clear()
        busy = [asyncio.create_task(pair.sender.send(transfer(n))) for n in range(2)]
        await until(pair, 1, "kv.begin", 2)
        pair.sender.withheld.shrink(3)
        assert (state.busy, state.idle, state.broken) == (2, 0, 2)
        pair.gate.set()
        receipts = await asyncio.gather(*busy)
        assert (state.busy, state.idle, state.broken) == (0, 1, 3)
        alone = [await pair.sender.send(transfer(n)) for n in range(2, 5)]
        assert len({one.connection for one in alone}) == 1
        assert alone[0].connection in {one.connection for one in receipts}
        pair.sender.withheld.shrink(0)
        await reopened(pair, 4)
        again = [await pair.sender.send(transfer(n)) for n in range(5, 9)]
        assert {one.connection for one in again} == {0, 1, 2, 3}

    run(scene, pool_size=4)


def test_a_pool_that_lost_all_serves_nobody_until_it_may() -> None:
    async def scene(pair: Pair) -> None:
        pair.sender.withheld.shrink(2)
        waiting = asyncio.create_task(pair.sender.send(transfer(1)))
        await until(pair, 0, "pool.queued")
        assert not pair.events(0, "pool.acquired")
        pair.sender.withheld.shrink(0)
        await waiting

    run(scene, pool_size=2)


def test_joined_connections_of_a_small_pool_go_behind_their_transfer() -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        sending = asyncio.create_task(pair.sender.send(transfer(1)))
        await until(pair, 1, "kv.begin")
        pair.sender.withheld.shrink(2)
        pair.gate.set()
        await sending
        assert pair.sender._gate.state.broken == 2

    run(scene, pool_size=3, stripes=3)


def test_what_breaks_while_a_pool_is_small_stays_away() -> None:
    async def scene(pair: Pair) -> None:
        pair.sender.withheld.shrink(1)
        state = pair.sender._gate.state
        assert pair.sender.drop(0, clean=False)
        await reopened(pair, 1)
        assert state.broken == 1, "one is replaced, the other is not wanted yet"

    run(scene, pool_size=2)


def test_a_pool_that_opens_on_demand_gives_idle_connections_up() -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        busy = [asyncio.create_task(pair.sender.send(transfer(n))) for n in range(3)]
        await until(pair, 1, "kv.begin", 3)
        pair.gate.set()
        await asyncio.gather(*busy)
        pair.sender.withheld.shrink(2)
        closed = pair.events(0, "connection.closed")
        assert [one["reason"] for one in closed] == ["shrunk"] * 2
        together = [asyncio.create_task(pair.sender.send(transfer(n))) for n in range(3, 5)]
        await asyncio.gather(*together)
        assert max(int(str(e["busy"])) for e in pair.events(0, "pool.acquired")[3:]) == 1
        pair.sender.withheld.shrink(0)

    run(scene, pool_size=3, discipline=Lifo(ports=8, idle_timeout_ns=60 * 10**9))


def test_every_so_many_th_loan_is_never_given_back() -> None:
    hit: list[int] = []

    async def scene(pair: Pair) -> None:
        pair.sender.affliction.leak(2, hit.append)
        for n in range(4):
            await pair.sender.send(transfer(n))
        assert hit == [1, 3]
        assert pair.sender._gate.state.busy == 2
        pair.sender.affliction.leak(None, hit.append)
        with pytest.raises(AcquireError, match="timeout"):
            await pair.sender.send(transfer(4))
        assert len(pair.events(0, "pool.released")) == 2

    run(scene, pool_size=2, acquire_s=0.05)


@pytest.mark.parametrize("clean", [True, False])
def test_an_idle_connection_that_is_dropped_is_replaced(clean: bool) -> None:
    async def scene(pair: Pair) -> None:
        assert pair.sender.drop(1, clean)
        async with asyncio.timeout(10):
            while pair.sender._gate.state.broken == 0:
                await asyncio.sleep(0)
        await reopened(pair, 2)
        for n in range(2):
            await pair.sender.send(transfer(n))
        assert not pair.events(1, "kv.refused")

    run(scene)


@pytest.mark.parametrize("clean", [True, False])
def test_a_connection_that_is_dropped_in_use_fails_its_transfer_alone(clean: bool) -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        both = [asyncio.create_task(pair.sender.send(transfer(n))) for n in range(2)]
        await until(pair, 1, "kv.begin", 2)
        lost = int(str(pair.events(0, "transfer.start")[0]["req"]))
        assert pair.sender.drop(int(str(pair.events(0, "transfer.start")[0]["conn"])), clean)
        with pytest.raises(TransferError):
            await both[lost]
        pair.gate.set()
        await both[1 - lost]
        await reopened(pair, 2)

    run(scene)


def test_a_connection_that_is_not_open_cannot_be_dropped() -> None:
    async def scene(pair: Pair) -> None:
        assert not pair.sender.drop(3, clean=True)

    run(scene, discipline=PerTransfer(ports=8), pool_size=4)


def test_a_receiver_waits_for_a_last_chunk_that_was_never_sent() -> None:
    hit: list[int] = []

    async def scene(pair: Pair) -> None:
        pair.sender.affliction.skip(None, 2, hit.append)
        await pair.sender.send(transfer(1))
        with pytest.raises(TransferError, match="timeout"):
            await pair.sender.send(transfer(2))
        await pair.sender.send(transfer(3))
        assert hit == [2]
        assert [one.request for one in pair.arrived] == [1, 3]

    run(scene, timeout_s=0.3)


def test_a_chunk_that_is_missing_in_the_middle_is_noticed_at_once() -> None:
    async def scene(pair: Pair) -> None:
        pair.sender.affliction.skip(1, None, lambda _: None)
        with pytest.raises(TransferError, match="out-of-order"):
            await pair.sender.send(transfer(1))
        pair.sender.affliction.spare("skip-chunk")
        await pair.sender.send(transfer(2))
        (refused,) = pair.events(1, "kv.refused")
        assert refused["req"] == 1

    run(scene)


def test_a_chunk_that_a_transfer_does_not_have_is_not_missing() -> None:
    hit: list[int] = []

    async def scene(pair: Pair) -> None:
        pair.sender.affliction.skip(1_000, None, hit.append)
        await pair.sender.send(transfer(1))

    run(scene)
    assert hit == []


@pytest.mark.parametrize("stripes", [1, 3])
def test_pages_that_changed_after_they_were_digested_are_refused(stripes: int) -> None:
    hit: list[int] = []

    async def scene(pair: Pair) -> None:
        pair.sender.affliction.outdate(2, hit.append)
        await pair.sender.send(transfer(1))
        with pytest.raises(TransferError):
            await pair.sender.send(transfer(2))
        await pair.sender.send(transfer(3))
        assert "bad-digest" in str(pair.events(1, "kv.refused")[0]["reason"])
        assert [one.request for one in pair.arrived] == [1, 3]

    run(scene, pool_size=4, stripes=stripes)
    assert hit == [2]


def test_few_source_ports_run_out_by_name() -> None:
    async def scene(pair: Pair) -> None:
        pair.sender.withheld.keep_ports(2)
        for n in range(2):
            await pair.sender.send(transfer(n))
        with pytest.raises(AcquireError, match="no-port"):
            await pair.sender.send(transfer(2))  # both rest in TIME_WAIT
        pair.sender.withheld.keep_ports(None)
        await pair.sender.send(transfer(3))
        assert pair.events(0, "pool.refused")[0]["reason"] == "no-port"

    run(scene, pool_size=None, discipline=PerTransfer(ports=8))


def test_a_receiver_that_accepts_nobody_lets_few_wait() -> None:
    async def scene(pair: Pair) -> None:
        pair.receiver.refrain(0)
        with pytest.raises(AcquireError, match="timeout"):
            await pair.sender.send(transfer(1))
        pair.receiver.refrain(None)
        await pair.sender.send(transfer(2))

    run(scene, pool_size=None, acquire_s=0.2, discipline=PerTransfer(ports=8))
