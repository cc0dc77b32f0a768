"""Transfers that are tried again: when, how often, in how many parts, and without the rule."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.defect import Defect
from testbed.contract.guard import Guard
from testbed_agents.pool import AcquireError, Refusal
from testbed_agents.transport import Fault, FrameError, TransferError
from testbed_agents.transport.retry import PASSING, Retries
from tests.fakes.kv_hand import Hand, parts, transfer_of, until
from tests.fakes.kv_pair import BLOCKS, Pair, run, transfer

pytestmark = pytest.mark.unit

BIG = 900_000_000
QUICK = Guard(retries=2, backoff_ns=1_000_000)


def failed(reason: Fault, broken: bool = False) -> TransferError:
    return TransferError(reason, "request 1", "as the test wants it", broken)


@given(st.integers(0, 16), st.integers(0, 20), st.sampled_from(Fault), st.booleans())
def test_a_budget_bounds_every_rule(budget: int, attempt: int, reason: Fault, broken: bool) -> None:
    rule = Retries(Guard(retries=budget), seed=1)
    error = failed(reason, broken)
    assert rule.again(attempt, error) is (attempt < budget and (broken or reason in PASSING))
    assert not rule.for_good(error)


@given(st.integers(1, 10**10), st.integers(0, 10), st.integers(0, 10**6), st.integers(0, 99))
def test_pauses_double_and_are_those_of_the_seed(
    first: int, attempt: int, request: int, seed: int
) -> None:
    rule = Retries(Guard(backoff_ns=first), seed)
    pause = rule.pause_ns(request, attempt)
    assert first << attempt <= pause <= (first << attempt) * 3 // 2
    assert pause == Retries(Guard(backoff_ns=first), seed).pause_ns(request, attempt)


def test_pauses_of_requests_differ() -> None:
    rule = Retries(Guard(), seed=1)
    assert len({rule.pause_ns(request, 0) for request in range(50)}) > 40


@given(st.integers(1, 64), st.integers(0, 200), st.sampled_from(Fault))
def test_only_what_took_too_long_is_divided(turns: int, blocks: int, reason: Fault) -> None:
    rule = Retries(Guard(), seed=1)
    after = rule.turns(turns, reason, blocks)
    if reason is Fault.TIMEOUT:
        assert 1 <= after <= max(1, min(2 * turns, blocks, 64))
    else:
        assert after == turns
    assert Retries(Guard(), 1, divides=False).turns(turns, reason, blocks) == turns


def test_without_the_rule_a_full_receiver_is_asked_for_ever_and_a_peer_fails_for_good() -> None:
    rule = Retries(Guard(retries=1), seed=1, bounded=False)
    assert rule.again(10**6, failed(Fault.FULL))
    assert rule.pause_ns(1, 10**6) == 0
    assert not rule.again(0, failed(Fault.CONNECTION_LOST))
    assert rule.for_good(failed(Fault.CONNECTION_LOST))
    assert not rule.for_good(failed(Fault.REFUSED))


async def cut(pair: Pair) -> None:
    """The receiver loses the connection of the transfer under way."""
    await until(lambda: any(one.current for one in pair.receiver._inlets))
    lost = next(one for one in pair.receiver._inlets if one.current)
    lost.end(FrameError(Fault.CONNECTION_LOST, "data connection", "as the test wants it"))


def guarded(
    scene: Callable[[Pair], Awaitable[None]],
    *defects: Defect,
    guard: Guard = QUICK,
    timeout_s: float = 20,
    pool_size: int = 2,
) -> None:
    run(scene, pool_size, timeout_s=timeout_s, guard=guard, defects=defects)


def test_a_transfer_whose_connection_is_lost_is_tried_again_with_the_next_epoch() -> None:
    async def scene(pair: Pair) -> None:
        sending = asyncio.create_task(pair.sender.send(transfer(1, 50_000_000)))
        await cut(pair)
        await cut(pair)
        await sending
        assert [one.epoch for one in pair.arrived] == [2]
        starts = pair.events(0, "transfer.start")
        assert [start.get("epoch", 0) for start in starts] == [0, 1, 2]
        assert len(pair.events(0, "transfer.failed")) == 2
        assert len(pair.events(0, "transfer.acked")) == 1

    guarded(scene)


def test_the_budget_ends_and_the_pair_goes_on() -> None:
    async def scene(pair: Pair) -> None:
        sending = asyncio.create_task(pair.sender.send(transfer(1, BIG)))
        for _ in range(3):
            await cut(pair)
        with pytest.raises(TransferError, match="connection-lost"):
            await sending
        await pair.sender.send(transfer(2))
        assert [one.request for one in pair.arrived] == [2]

    guarded(scene)


def test_without_the_rule_one_lost_connection_is_the_end_of_the_pair() -> None:
    async def scene(pair: Pair) -> None:
        sending = asyncio.create_task(pair.sender.send(transfer(1, BIG)))
        await cut(pair)
        with pytest.raises(TransferError):
            await sending
        with pytest.raises(AcquireError) as caught:
            await pair.sender.send(transfer(2))
        assert caught.value.reason is Refusal.PEER_FAILED
        assert [e["reason"] for e in pair.events(0, "pool.refused")] == ["peer-failed"]
        assert not pair.arrived

    guarded(scene, Defect.RETRY_BUDGET)


def test_what_was_applied_is_acknowledged_again_and_not_applied_twice() -> None:
    async def scene(pair: Pair) -> None:
        await pair.sender.send(transfer(1))
        await pair.sender.send(transfer(1, epoch=1))
        assert [one.epoch for one in pair.arrived] == [0]
        assert len(pair.events(1, "kv.verified")) == 1
        assert len(pair.events(0, "transfer.acked")) == 2

    guarded(scene)


def test_what_never_fits_is_refused_within_the_budget() -> None:
    async def scene(pair: Pair) -> None:
        with pytest.raises(TransferError, match="10 pages wanted, 9 of 9 are free") as caught:
            await pair.sender.send(transfer(1, BIG))
        assert caught.value.reason is Fault.FULL
        assert len(pair.events(0, "transfer.start")) == 3

    guarded(scene, guard=Guard(pages=9, retries=2, backoff_ns=1_000_000))


def test_without_the_rule_a_full_receiver_is_asked_again_and_again() -> None:
    async def scene(pair: Pair) -> None:
        sending = asyncio.create_task(pair.sender.send(transfer(1, BIG)))
        await until(lambda: len(pair.events(0, "transfer.start")) > 20)
        assert not sending.done()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)

    guarded(scene, Defect.RETRY_BUDGET, guard=Guard(pages=9, retries=2))


def test_what_took_too_long_is_sent_again_in_parts_each_with_its_own_time() -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        sending = asyncio.create_task(pair.sender.send(transfer(1)))
        await until(lambda: len(pair.events(0, "transfer.start")) == 2)
        pair.gate.set()
        await sending
        assert [e.get("turns") for e in pair.events(0, "transfer.start")] == [None, 2]
        assert [bytes(block) for block in pair.arrived[-1].blocks] == BLOCKS
        assert (len(pair.receiver._parts), len(pair.receiver._out._turns)) == (0, 0)
        await pair.sender.send(transfer(2))

    guarded(scene, timeout_s=0.5)


@pytest.mark.parametrize("count", [2, 5, 10])
def test_parts_one_by_one_are_each_acknowledged_and_make_the_whole(count: int) -> None:
    async def scene(pair: Pair) -> None:
        hand = await Hand(pair).open()
        for number, part in enumerate(parts(transfer_of(1, b"a"), count, in_turn=True)):
            assert bool(pair.arrived) is False
            await hand.say(part)
            assert (await hand.answer()).request == 1
            assert len(pair.events(1, "kv.begin")) == 1, number
        (arrived,) = pair.arrived
        assert [bytes(block) for block in arrived.blocks] == [b"a" * 300] * 10
        await hand.close()

    guarded(scene)


def test_a_part_that_no_other_follows_gives_its_pages_back_in_time() -> None:
    async def scene(pair: Pair) -> None:
        hand = await Hand(pair).open()
        await hand.say(parts(transfer_of(1, b"a"), 2, in_turn=True)[0])
        await hand.answer()
        assert pair.receiver._landings.held == 10
        await until(lambda: pair.receiver._landings.held == 0)
        assert not pair.receiver._parts
        await hand.close()

    guarded(scene, guard=Guard(pages=10), timeout_s=0.3)


def test_without_division_the_whole_is_sent_again() -> None:
    async def scene(pair: Pair) -> None:
        pair.gate.clear()
        with pytest.raises(TransferError, match="no acknowledgement in time"):
            await pair.sender.send(transfer(1))
        assert [e.get("turns") for e in pair.events(0, "transfer.start")] == [None, None, None]

    guarded(scene, Defect.RESEND_IN_PARTS, timeout_s=0.3)
