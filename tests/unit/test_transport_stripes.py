"""One transfer over several connections, over loopback: whole or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from testbed.contract.pool import DisciplineRule, Lanes
from testbed_agents.transport import Fault, OutgoingTransfer, TransferError, frame
from testbed_agents.transport.pieces import Pad, parcels_of
from tests.fakes.kv_pair import BLOCKS, STANDING, Pair, run, transfer
from tests.unit.test_transport_damage import converse

CHUNK = 65_536


def striped(
    scene: Callable[[Pair], Awaitable[None]],
    size: int = 4,
    stripes: int = 3,
    discipline: DisciplineRule = STANDING,
    timeout_s: float = 20,
    verify_all: bool = False,
) -> None:
    run(
        scene, size, discipline=discipline, stripes=stripes, timeout_s=timeout_s,
        verify_all=verify_all,
    )  # fmt: skip


def conns(pair: Pair, kind: str) -> list[object]:
    return [event["conn"] for event in pair.events(0, kind)]


@pytest.mark.parametrize("discipline", [STANDING, Lanes()])
@pytest.mark.parametrize("verify_all", [False, True])
def test_a_transfer_goes_over_several_connections_and_arrives_once(
    discipline: DisciplineRule, verify_all: bool
) -> None:
    async def scene(pair: Pair) -> None:
        receipt = await pair.sender.send(transfer(5))
        (arrived,) = pair.arrived
        assert [bytes(block) for block in arrived.blocks] == BLOCKS
        assert receipt.wire_bytes == arrived.wire_bytes == 2_000_000
        assert conns(pair, "pool.acquired") == [0]
        assert conns(pair, "pool.joined") == conns(pair, "pool.left") == [1, 2]
        for kind in ("pool.queued", "transfer.start", "transfer.acked", "pool.released"):
            assert len(pair.events(0, kind)) == 1
        assert pair.events(0, "transfer.start")[0]["parts"] == 3
        assert sorted(map(str, conns(pair, "tcp.info"))) == ["0", "1", "2"]
        (begun,) = pair.events(1, "kv.begin")
        assert (begun["size"], begun["blocks"]) == (2_000_000, len(BLOCKS))
        (verified,) = pair.events(1, "kv.verified")
        assert (verified["size"], verified["blocks"]) == (2_000_000, len(BLOCKS))
        assert (pair.sender._gate.state.busy, len(pair.receiver._parts)) == (0, 0)
        await pair.sender.send(transfer(6))

    striped(scene, discipline=discipline, verify_all=verify_all)


def test_small_transfers_and_single_blocks_stay_in_one_piece() -> None:
    async def scene(pair: Pair) -> None:
        await pair.sender.send(transfer(1, CHUNK))
        await pair.sender.send(OutgoingTransfer(2, 0, [b"x"], 2_000_000))
        await pair.sender.send(OutgoingTransfer(3, 0, [], 2_000_000))
        assert not pair.events(0, "pool.joined")
        assert all("parts" not in event for event in pair.events(0, "transfer.start"))

    striped(scene)


def test_who_waits_goes_before_who_wants_more() -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        tasks = [asyncio.create_task(pair.sender.send(transfer(n))) for n in range(4)]
        while not pair.events(1, "kv.begin"):
            await asyncio.sleep(0)
        assert (pair.sender._gate.state.busy, pair.sender._gate.state.waiting) == (2, 3)
        pair.gate.set()
        await asyncio.gather(*tasks)
        assert [event["req"] for event in pair.events(0, "pool.acquired")] == [0, 1, 2, 3]
        assert {event["waiting"] for event in pair.events(0, "pool.joined")} == {0}
        assert {event["busy"] for event in pair.events(0, "pool.joined")} == {2}
        assert pair.sender._gate.state.busy == 0

    striped(scene, size=2, stripes=2)


def test_a_refusal_of_the_whole_keeps_all_connections() -> None:
    async def scene(pair: Pair) -> None:
        pair.refuse.add(1)
        with pytest.raises(TransferError, match="not announced") as caught:
            await pair.sender.send(transfer(1))
        assert caught.value.reason is Fault.REFUSED
        assert pair.sender._gate.state.broken == 0
        assert len(pair.events(1, "kv.refused")) == 1
        await pair.sender.send(transfer(2))

    striped(scene)


def test_one_part_that_is_lost_fails_the_whole_and_nothing_is_published() -> None:
    async def scene(pair: Pair) -> None:
        sending = asyncio.create_task(pair.sender.send(transfer(1, 900_000_000)))
        while (
            len(pair.receiver._parts) == 0
            or sum(inlet.current is not None for inlet in pair.receiver._inlets) < 3
        ):
            await asyncio.sleep(0)
        inlet = next(one for one in pair.receiver._inlets if one.current is not None)
        inlet.end(frame.FrameError(Fault.BAD_DIGEST, "request 1", "as the test wants it"))
        assert [one.current for one in pair.receiver._inlets] == [None]  # the fourth, idle one
        with pytest.raises(TransferError):
            await sending
        assert not pair.arrived
        assert not pair.events(1, "kv.verified")
        assert [e["reason"] for e in pair.events(1, "kv.refused")] == [
            "bad-digest: as the test wants it"
        ]
        assert len(pair.events(0, "transfer.failed")) == 1
        assert conns(pair, "pool.left") == [1, 2]
        await pair.sender.send(transfer(2))
        assert [one.request for one in pair.arrived] == [2]
        while pair.sender._gate.state.broken:
            await asyncio.sleep(0)
        assert pair.sender._gate.state.idle == 4

    striped(scene)


def raw_parts(one: OutgoingTransfer, count: int) -> list[bytes]:
    hello = frame.encode_hello(frame.Hello("p9", "md1", 0, 1, verify_all=False))
    return [
        hello
        + b"".join(bytes(p.count) if isinstance(p, Pad) else bytes(p) for p in parcel.pieces())
        for parcel in parcels_of(one, CHUNK, False, count)
    ]


def test_a_part_that_comes_late_is_not_written() -> None:
    async def scene(pair: Pair) -> None:
        first, second = raw_parts(transfer(9, 300_000), 2)
        answer = await converse(pair.port, first[:-1], close=True)  # cut: the transfer has failed
        assert b"closed within a transfer" in answer
        answer = await converse(pair.port, second)
        assert b"duplicate" in answer
        assert not pair.arrived
        assert len(pair.receiver._parts) == 0

    striped(scene)


def test_a_part_without_the_others_ends_at_its_deadline() -> None:
    async def scene(pair: Pair) -> None:
        first, _ = raw_parts(transfer(9, 300_000), 2)
        answer = await converse(pair.port, first)
        assert b"not complete in time" in answer
        assert not pair.arrived
        assert len(pair.receiver._parts) == 0

    striped(scene, timeout_s=0.3)


def test_a_newer_attempt_ends_the_parts_of_the_older_one() -> None:
    async def scene(pair: Pair) -> None:
        first, _ = raw_parts(transfer(9, 300_000), 2)
        waiting = asyncio.create_task(converse(pair.port, first))
        while len(pair.receiver._parts) == 0:
            await asyncio.sleep(0)
        await pair.sender.send(transfer(9, epoch=1))
        assert b"another part failed" in await waiting
        assert [(one.request, one.epoch) for one in pair.arrived] == [(9, 1)]

    striped(scene)


def test_a_cancelled_transfer_gives_all_its_connections_back() -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        sending = asyncio.create_task(pair.sender.send(transfer(1)))
        while not pair.events(1, "kv.begin"):
            await asyncio.sleep(0)
        sending.cancel()
        await asyncio.wait([sending])
        pair.gate.set()
        assert pair.sender._gate.state.busy == 0
        await pair.sender.send(transfer(2))

    striped(scene)
    striped(scene, discipline=Lanes())


def test_a_connection_that_cannot_be_joined_is_done_without() -> None:
    async def scene(pair: Pair) -> None:
        lanes = pair.sender._lanes
        make = lanes._lane

        def lane(connection: int) -> object:
            made = make(connection)
            if connection == 1:
                made._peer = made._peer.model_copy(update={"data_port": 1})
            return made

        lanes._lane = lane  # type: ignore[method-assign, assignment]
        await pair.sender.send(transfer(1))
        assert pair.events(0, "transfer.start")[0]["parts"] == 2
        assert conns(pair, "pool.joined") == [2]
        assert sorted(map(str, conns(pair, "pool.left"))) == ["1", "2"]
        assert not pair.events(0, "pool.refused")
        assert pair.sender._gate.state.busy == 0

    striped(scene, discipline=Lanes())
