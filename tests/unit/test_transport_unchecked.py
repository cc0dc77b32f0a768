"""Digests, counts, deadlines and bytes: each check on, and what passes when it is off."""

from __future__ import annotations

import asyncio

import pytest

from testbed.contract.defect import Defect
from testbed.contract.guard import Guard
from testbed_agents.pool import AcquireError, Refusal
from testbed_agents.transport import Fault, TransferError, frame
from testbed_agents.transport.pieces import Parcel
from tests.fakes.kv_hand import CHUNK, Hand, said, transfer_of, until, whole
from tests.fakes.kv_pair import Pair, run, transfer

pytestmark = pytest.mark.unit

FIRST = frame.HEADER_BYTES + frame.table_bytes(10)


@pytest.mark.parametrize("checked", [True, False])
def test_a_block_that_is_not_what_was_sent(checked: bool) -> None:
    async def scene(pair: Pair) -> None:
        data = bytearray(whole(transfer_of(1, b"a")))
        data[FIRST + frame.CHUNK_BYTES + 7] ^= 0x10
        hand = await Hand(pair).open()
        await hand.say(bytes(data))
        ack = await hand.answer()
        if checked:
            assert "a block is not what was sent" in ack.reason
            assert not pair.arrived
        else:
            assert ack.status is frame.Status.APPLIED
            assert bytes(pair.arrived[0].blocks[0]) != b"a" * 300
            assert pair.events(1, "kv.verified")[0]["unequal"] == 1
        await hand.close()

    run(scene, defects=() if checked else (Defect.DIGEST_CHECK,))


def without_chunk(number: int) -> bytes:
    """A transfer of which one chunk is never sent, nor the stamp that closes it."""
    parcel = Parcel(transfer_of(1, b"a"), CHUNK, False)
    left_out = parcel.layout.chunks[number]
    data = said(parcel)
    before, after = left_out.offset - frame.STAMP_BYTES, left_out.end - frame.STAMP_BYTES
    return data[: before + frame.STAMP_BYTES] + data[after + frame.STAMP_BYTES :]


@pytest.mark.parametrize("counted", [True, False])
def test_a_chunk_that_never_comes(counted: bool) -> None:
    async def scene(pair: Pair) -> None:
        hand = await Hand(pair).open()
        await hand.say(without_chunk(4))
        ack = await hand.answer()
        if counted:
            assert "chunk 4 is missing: chunk 5 came" in ack.reason
            assert not pair.arrived
        else:
            assert ack.status is frame.Status.APPLIED
            blocks = [bytes(block) for block in pair.arrived[0].blocks]
            assert blocks == [b"a" * 300] * 4 + [bytes(300)] + [b"a" * 300] * 5
            assert pair.events(1, "kv.verified")[0]["missing"] == 1
        await hand.close()

    run(scene, defects=() if counted else (Defect.BLOCK_COUNT,))


def test_a_last_chunk_that_never_comes_is_named_by_the_deadline() -> None:
    async def scene(pair: Pair) -> None:
        hand = await Hand(pair).open()
        await hand.say(without_chunk(9))
        assert "9 of 10 blocks came" in (await hand.answer()).reason
        assert not pair.arrived
        await hand.close()

    run(scene, timeout_s=0.3)


@pytest.mark.parametrize("bounded", [True, False])
def test_pages_of_a_sender_that_falls_silent(bounded: bool) -> None:
    async def scene(pair: Pair) -> None:
        hand = await Hand(pair).open()
        await hand.say(whole(transfer_of(1, b"a"))[:-50])
        await until(lambda: pair.receiver._landings.held == 10)
        later = asyncio.get_running_loop().time() + 0.5
        await until(lambda: asyncio.get_running_loop().time() > later)
        assert pair.receiver._landings.held == (0 if bounded else 10)
        await hand.close()

    run(
        scene, timeout_s=0.1, guard=Guard(pages=10),
        defects=() if bounded else (Defect.TRANSFER_DEADLINE,),
    )  # fmt: skip


@pytest.mark.parametrize("bounded", [True, False])
def test_a_transfer_that_is_never_acknowledged(bounded: bool) -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        sending = asyncio.create_task(pair.sender.send(transfer(1)))
        done, _ = await asyncio.wait((sending,), timeout=0.5)
        assert bool(done) is bounded
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)

    run(scene, timeout_s=0.1, defects=() if bounded else (Defect.TRANSFER_DEADLINE,))


@pytest.mark.parametrize("guarded", [True, False])
def test_a_payload_that_stalls_gives_its_lane_back(guarded: bool) -> None:
    async def scene(pair: Pair) -> None:
        pair.receiver.hold(True)
        sending = asyncio.create_task(pair.sender.send(transfer(1, 50_000_000)))
        done, _ = await asyncio.wait((sending,), timeout=1)
        assert bool(done) is guarded
        if guarded:
            with pytest.raises(TransferError, match="it stalled") as caught:
                await sending
            assert caught.value.reason is Fault.TIMEOUT
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        assert pair.sender._gate.state.busy == 0

    run(
        scene, 1, guard=Guard(stall_timeout_ns=100_000_000),
        defects=() if guarded else (Defect.LANE_BYTES,),
    )  # fmt: skip


def test_a_slow_payload_is_no_stalled_one() -> None:
    async def scene(pair: Pair) -> None:
        for _ in range(3):
            sending = asyncio.create_task(pair.sender.send(transfer(len(pair.arrived), 9_000_000)))
            await sending

    run(scene, 1, guard=Guard(stall_timeout_ns=50_000_000))


@pytest.mark.parametrize("guarded", [True, False])
def test_admission_counts_bytes(guarded: bool) -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        tasks = [asyncio.create_task(pair.sender.send(transfer(n, 2_000_000))) for n in range(4)]
        await until(lambda: len(pair.events(0, "pool.queued")) == (2 if guarded else 4))
        assert {e["size"] for e in pair.events(0, "pool.queued")} == {2_000_000}
        pair.gate.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        refused = [one for one in results if isinstance(one, AcquireError)]
        assert len(refused) == (2 if guarded else 0)
        assert {one.reason for one in refused} <= {Refusal.QUEUE_FULL}
        await pair.sender.send(transfer(9, 50_000_000))  # one is admitted whatever its size

    run(
        scene, 1, guard=Guard(queue_bytes=5_000_000),
        defects=() if guarded else (Defect.LANE_BYTES,),
    )  # fmt: skip
