"""Sender and receiver over loopback sockets: receipts, refusals, broken connections."""

from __future__ import annotations

import asyncio
import io

import pytest

from testbed.contract.event import EventLog
from testbed.contract.role import Role
from testbed.errors import AgentError
from testbed_agents.clock import AgentClock
from testbed_agents.pool import AcquireError, Refusal
from testbed_agents.transport import Fault, KvSender, OutgoingTransfer, TransferError
from testbed_agents.transport.pieces import Parcel
from tests.fakes.kv_pair import BLOCKS, Pair, make_config, run, transfer


@pytest.mark.parametrize("verify_all", [False, True])
def test_blocks_arrive_and_the_receipt_counts_the_bytes(verify_all: bool) -> None:
    async def scene(pair: Pair) -> None:
        receipt = await pair.sender.send(transfer(5))
        (arrived,) = pair.arrived
        assert [bytes(block) for block in arrived.blocks] == BLOCKS
        assert receipt.wire_bytes == arrived.wire_bytes == 2_000_000
        kinds = ("pool.queued", "pool.acquired", "transfer.start", "transfer.acked", "tcp.info")
        for kind in (*kinds, "pool.released"):
            assert len(pair.events(0, kind)) == 1
        assert pair.events(1, "kv.begin")[0]["size"] == 2_000_000
        assert pair.events(1, "kv.verified")[0]["blocks"] == len(BLOCKS)

    run(scene, verify_all=verify_all)


def test_many_transfers_share_few_connections_in_order() -> None:
    async def scene(pair: Pair) -> None:
        async with asyncio.TaskGroup() as group:
            for request in range(9):
                group.create_task(pair.sender.send(transfer(request, 300_000)))
        assert sorted(one.request for one in pair.arrived) == list(range(9))
        acquired = pair.events(0, "pool.acquired")
        assert [event["req"] for event in acquired] == list(range(9))
        assert max(int(str(event["busy"])) for event in acquired) == 2
        assert all(event["conn"] in (0, 1) for event in acquired)

    run(scene)


def test_no_blocks_and_few_bytes_are_legal() -> None:
    async def scene(pair: Pair) -> None:
        receipt = await pair.sender.send(OutgoingTransfer(1, 0, [], 0))
        assert pair.arrived[0].blocks == ()
        assert (
            receipt.wire_bytes == Parcel(OutgoingTransfer(1, 0, [], 0), 1, False).layout.wire_bytes
        )

    run(scene)


def test_the_acknowledgement_waits_for_the_handler() -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        sending = asyncio.create_task(pair.sender.send(transfer(1)))
        while not pair.events(1, "kv.begin"):
            await asyncio.sleep(0)
        done, _ = await asyncio.wait((sending,), timeout=0.05)
        assert not done
        pair.gate.set()
        await sending

    run(scene)


def test_a_refusal_is_reported_and_keeps_the_connection() -> None:
    async def scene(pair: Pair) -> None:
        pair.refuse.add(1)
        with pytest.raises(TransferError, match="not announced") as caught:
            await pair.sender.send(transfer(1))
        assert caught.value.reason is Fault.REFUSED
        assert pair.events(1, "kv.refused")
        await pair.sender.send(transfer(2))

    run(scene, pool_size=1)


def test_a_duplicate_fails_and_the_connection_is_replaced() -> None:
    async def scene(pair: Pair) -> None:
        await pair.sender.send(transfer(1))
        with pytest.raises(TransferError, match="epoch 0, newest is 0"):
            await pair.sender.send(transfer(1, 30_000_000))
        await pair.sender.send(transfer(2))
        assert [one.request for one in pair.arrived] == [1, 2]

    run(scene, pool_size=1)


def test_a_full_queue_and_a_long_wait_are_refused_by_name() -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        held, *waiting = (asyncio.create_task(pair.sender.send(transfer(n))) for n in range(3))
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [getattr(one, "reason", None) for one in results] == [
            Refusal.TIMEOUT,
            Refusal.QUEUE_FULL,
        ]
        assert isinstance(results[0], AcquireError)
        assert [e["reason"] for e in pair.events(0, "pool.refused")] == ["queue-full", "timeout"]
        pair.gate.set()
        await held

    run(scene, pool_size=1, queue=1, acquire_s=0.05)


def test_a_transfer_that_is_never_acknowledged_ends_at_its_deadline() -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        with pytest.raises(TransferError) as caught:
            await pair.sender.send(transfer(1))
        assert caught.value.reason is Fault.TIMEOUT
        pair.gate.set()
        await pair.sender.send(transfer(2))

    run(scene, pool_size=1, timeout_s=0.3)


def test_a_cancelled_transfer_frees_its_connection() -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        held = asyncio.create_task(pair.sender.send(transfer(1)))
        waiting = asyncio.create_task(pair.sender.send(transfer(2)))
        while not pair.events(1, "kv.begin"):
            await asyncio.sleep(0)
        held.cancel()
        await asyncio.wait((held,))
        pair.gate.set()
        await waiting
        assert [one.request for one in pair.arrived][-1] == 2

    run(scene, pool_size=1)


def test_a_receiver_that_goes_away_fails_the_transfer_and_may_come_back() -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        sending = asyncio.create_task(pair.sender.send(transfer(1)))
        while not pair.events(1, "kv.begin"):
            await asyncio.sleep(0)
        for inlet in tuple(pair.receiver._inlets):
            inlet.end(None)
        with pytest.raises(TransferError) as caught:
            await sending
        assert caught.value.reason is Fault.CONNECTION_LOST
        pair.gate.set()
        await pair.sender.send(transfer(2))

    run(scene, pool_size=1)


def test_idle_connections_that_were_lost_are_replaced() -> None:
    async def scene(pair: Pair) -> None:
        await pair.sender.send(transfer(1))
        for inlet in tuple(pair.receiver._inlets):
            inlet.end(None)
        while pair.sender._gate.state.broken < 2:
            await asyncio.sleep(0)
        for request in (2, 3, 4):
            await pair.sender.send(transfer(request))
        assert not pair.events(0, "transfer.failed")

    run(scene)


def test_a_receiver_that_does_not_listen_is_named() -> None:
    async def scene(pair: Pair) -> None:
        await pair.sender.close()
        await pair.receiver.close()
        config = make_config(Role.PREFILL)(pair.port)
        log = EventLog(io.StringIO(), "p1", AgentClock(0))
        sender = KvSender(config, config.peers[0], AgentClock(0), log)
        with pytest.raises(AgentError, match="open the connection pool: md1"):
            await sender.open()
        await sender.close()

    run(scene)
