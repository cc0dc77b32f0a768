"""Late writes: with each protection none lands in another's pages, without it they do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from testbed.contract.defect import Defect
from testbed.contract.guard import Guard
from testbed_agents.transport import Fault, FrameError, TransferError, frame
from tests.fakes.kv_hand import Hand, parts, transfer_of, until, whole
from tests.fakes.kv_pair import Pair, run

pytestmark = pytest.mark.unit


def paged(
    scene: Callable[[Pair], Awaitable[None]],
    *defects: Defect,
    pages: int = 10,
    timeout_s: float = 20,
) -> None:
    run(scene, timeout_s=timeout_s, guard=Guard(pages=pages, retries=2), defects=defects)


def letters(pair: Pair, request: int, epoch: int = 0) -> set[bytes]:
    """Everything that was handed on of an attempt at a request."""
    (arrived,) = [one for one in pair.arrived if (one.request, one.epoch) == (request, epoch)]
    return {bytes(block[:1]) for block in arrived.blocks}


def here(pair: Pair, blocks: int, request: int = 1) -> Callable[[], bool]:
    """Whether so many blocks of a request have landed."""
    return lambda: any(
        inlet.current is not None
        and inlet.current.request == request
        and inlet.blocks_here >= blocks
        for inlet in pair.receiver._inlets
    )


async def half(pair: Pair, letter: bytes = b"a") -> tuple[Hand, bytes]:
    """Request 1 with half of its blocks in their pages, and what is left to say of it."""
    hand = await Hand(pair).open()
    data = whole(transfer_of(1, letter))
    cut = len(data) * 497 // 1_000
    await hand.say(data[:cut])
    await until(here(pair, 5))
    return hand, data[cut:]


async def next_one(pair: Pair, request: int, epoch: int = 0) -> asyncio.Task[object]:
    """Another transfer, all of it in its pages, whose handler has not looked at it yet."""
    pair.gate.clear()
    sending = asyncio.create_task(pair.sender.send(transfer_of(request, b"b", epoch)))
    key = (request, epoch)
    await until(lambda: key in pair.receiver._out.applying)
    return sending


@pytest.mark.parametrize("fenced", [True, False])
def test_an_attempt_that_a_newer_one_replaces_writes_nothing_more(fenced: bool) -> None:
    async def scene(pair: Pair) -> None:
        hand, rest = await half(pair)
        sending = await next_one(pair, 1, epoch=1)
        if fenced:
            assert (await hand.answer()).reason.startswith("late")
        await hand.say(rest)
        if not fenced:
            await until(lambda: len(pair.events(1, "page.overwritten")) == 5)
        pair.gate.set()
        await sending
        assert letters(pair, 1, epoch=1) == ({b"b"} if fenced else {b"a", b"b"})
        freed = pair.events(1, "pages.freed")[0]
        assert (freed["reason"], freed["writers"]) == ("given-up", 0 if fenced else 1)
        for one in pair.events(1, "page.overwritten"):
            assert (one["req"], one["by"], one["epoch"], one["freed"]) == (1, 1, 0, "given-up")
        await hand.close()

    paged(scene, *(() if fenced else (Defect.LATE_WRITE_FENCE,)))


@pytest.mark.parametrize("fenced", [True, False])
def test_one_that_took_too_long_writes_nothing_more(fenced: bool) -> None:
    async def scene(pair: Pair) -> None:
        hand, rest = await half(pair)
        await until(lambda: pair.events(1, "pages.freed"))
        sending = await next_one(pair, 2)
        if fenced:
            assert "5 of 10 blocks came" in (await hand.answer()).reason
        await hand.say(rest)
        if not fenced:
            await until(lambda: len(pair.events(1, "page.overwritten")) == 5)
        pair.gate.set()
        await sending
        assert letters(pair, 2) == ({b"b"} if fenced else {b"a", b"b"})
        await hand.close()

    paged(scene, *(() if fenced else (Defect.LATE_WRITE_FENCE,)), timeout_s=0.4)


@pytest.mark.parametrize("agreed", [True, False])
def test_pages_of_an_aborted_transfer_are_free_once_its_sender_has_stopped(agreed: bool) -> None:
    async def scene(pair: Pair) -> None:
        hand, rest = await half(pair)
        pair.receiver.abort(1)
        if agreed:
            pair.gate.clear()
            sending = asyncio.create_task(pair.sender.send(transfer_of(2, b"b")))
            await until(lambda: len(pair.events(1, "kv.begin")) == 2)
            assert not pair.events(1, "pages.freed")  # request 2 waits for them
            assert (await hand.answer()).status is frame.Status.ABORTED
            await hand.say(rest[:100])
            await hand.close()
        else:
            sending = await next_one(pair, 2)
            await hand.say(rest)
            await until(lambda: len(pair.events(1, "page.overwritten")) == 5)
        pair.gate.set()
        await sending
        assert letters(pair, 2) == ({b"b"} if agreed else {b"a", b"b"})
        freed = pair.events(1, "pages.freed")[0]
        assert (freed["reason"], freed["writers"]) == ("aborted", 0 if agreed else 1)
        await hand.close()

    paged(scene, *(() if agreed else (Defect.ABORT_ACK,)))


def test_the_sender_of_an_aborted_transfer_stops_and_does_not_try_again() -> None:
    async def scene(pair: Pair) -> None:
        sending = asyncio.create_task(pair.sender.send(transfer_of(1, b"a", blocks=1_000)))
        await until(here(pair, 5))
        pair.receiver.abort(1)
        with pytest.raises(TransferError) as caught:
            await sending
        assert caught.value.reason is Fault.ABORTED
        await until(lambda: pair.events(1, "pages.freed"))
        assert len(pair.events(0, "transfer.start")) == 1
        assert pair.receiver._landings.held == 0
        await pair.sender.send(transfer_of(2, b"b"))
        assert letters(pair, 2) == {b"b"}

    paged(scene, pages=1_000)


@pytest.mark.parametrize("drained", [True, False])
def test_pages_are_free_once_all_parts_have_ended(drained: bool) -> None:
    async def scene(pair: Pair) -> None:
        first, second = await Hand(pair).open(0), await Hand(pair).open(1)
        one, two = parts(transfer_of(1, b"a"), 2)
        await first.say(one[:-50])
        await second.say(two[: len(two) // 2])
        await until(lambda: sum(i.blocks_here for i in pair.receiver._inlets if i.current) >= 6)
        lost = next(i for i in pair.receiver._inlets if i.current and i.blocks_here >= 4)
        lost.end(FrameError(Fault.BAD_DIGEST, "request 1", "as the test wants it"))
        sending = await next_one(pair, 2)
        if drained:
            assert "part-lost" in (await second.answer()).reason
        await second.say(two[len(two) // 2 :])
        if not drained:
            await until(lambda: pair.events(1, "page.overwritten"))
        pair.gate.set()
        await sending
        assert letters(pair, 2) == ({b"b"} if drained else {b"a", b"b"})
        freed = pair.events(1, "pages.freed")[0]
        assert (freed["reason"], freed["writers"]) == ("part-lost", 0 if drained else 1)
        await first.close()
        await second.close()

    paged(scene, *(() if drained else (Defect.SIBLING_DRAIN,)))


def test_who_finds_no_page_waits_unread_and_goes_on_when_some_are_free() -> None:
    async def scene(pair: Pair) -> None:
        hand, rest = await half(pair)
        sending = asyncio.create_task(pair.sender.send(transfer_of(2, b"b")))
        await until(lambda: len(pair.events(1, "kv.begin")) == 2)
        assert not here(pair, 1, request=2)()
        await hand.say(rest)
        assert (await hand.answer()).status is frame.Status.APPLIED
        await sending
        assert letters(pair, 2) == {b"b"}
        assert [e["pages"] for e in pair.events(1, "pages.taken")] == [10, 10]
        assert pair.receiver._landings.held == 0
        await hand.close()

    paged(scene, pages=15)


def test_without_pages_an_abort_changes_nothing() -> None:
    async def scene(pair: Pair) -> None:
        hand, rest = await half(pair)
        pair.receiver.abort(1)
        await hand.say(rest)
        assert (await hand.answer()).status is frame.Status.APPLIED
        await hand.close()

    run(scene)
