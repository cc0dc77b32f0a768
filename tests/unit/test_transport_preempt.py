"""A transfer between two chunks of another, over loopback and without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.checks.pool_replay import PoolReplay
from testbed.checks.step import Step
from testbed.contract.event import Kind
from testbed.contract.pool import DisciplineRule, Lanes, Order
from testbed.metrics.pool import _State
from testbed_agents.transport import OutgoingTransfer, TransferError, frame
from testbed_agents.transport.epochs import Epochs
from testbed_agents.transport.parser import Begun, Complete, Skip, read_transfers
from testbed_agents.transport.pieces import Gap, Pad, Parcel
from tests.fakes.kv_pair import BLOCKS, STANDING, Pair, run, transfer

LARGE = 600_000_000
TINY = 4_000


def preempting(
    scene: Callable[[Pair], Awaitable[None]],
    discipline: DisciplineRule = STANDING,
    order: Order = Order.SMALLEST_FIRST,
    timeout_s: float = 20,
    verify_all: bool = False,
) -> None:
    run(
        scene, 1, discipline=discipline, order=order, timeout_s=timeout_s, verify_all=verify_all,
        preempt=True,
    )  # fmt: skip


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0)


def large(request: int = 1, blocks: int = 400) -> OutgoingTransfer:
    return OutgoingTransfer(request, 0, [bytes([i % 251]) * 300 for i in range(blocks)], LARGE)


def told(pair: Pair) -> list[tuple[object, object]]:
    kinds = ("acquired", "released", "suspended", "resumed")
    events = [event for kind in kinds for event in pair.events(0, f"pool.{kind}")]
    events.sort(key=lambda event: int(str(event["seq"])))
    return [(event["kind"], event["req"]) for event in events]


@pytest.mark.parametrize("discipline", [STANDING, Lanes()])
@pytest.mark.parametrize("size", [TINY, 300_000])
def test_a_small_one_comes_between_two_chunks_of_a_large_one(
    discipline: DisciplineRule, size: int
) -> None:
    async def scene(pair: Pair) -> None:
        sending = asyncio.create_task(pair.sender.send(large()))
        await until(lambda: bool(pair.events(1, "kv.begin")))
        await pair.sender.send(transfer(2, size))
        assert not sending.done()
        await sending
        assert [one.request for one in pair.arrived] == [2, 1]
        assert [bytes(block) for block in pair.arrived[0].blocks] == BLOCKS
        assert [bytes(block) for block in pair.arrived[1].blocks] == large().blocks
        assert told(pair) == [
            ("pool.acquired", 1), ("pool.suspended", 1), ("pool.acquired", 2),
            ("pool.released", 2), ("pool.resumed", 1), ("pool.released", 1),
        ]  # fmt: skip
        assert [e["size"] for e in pair.events(1, "kv.verified")] == [
            pair.arrived[0].wire_bytes, LARGE,
        ]  # fmt: skip
        await pair.sender.send(transfer(3))

    preempting(scene, discipline)


def test_every_byte_is_verified_across_the_gap() -> None:
    async def scene(pair: Pair) -> None:
        one = OutgoingTransfer(1, 0, [b"x" * 300] * 200, 60_000_000)
        sending = asyncio.create_task(pair.sender.send(one))
        await until(lambda: bool(pair.events(1, "kv.begin")))
        await pair.sender.send(transfer(2, 300_000))
        await sending
        assert [one.request for one in pair.arrived] == [2, 1]

    preempting(scene, verify_all=True)


def test_a_larger_one_and_a_later_deadline_wait_for_the_end() -> None:
    async def scene(pair: Pair) -> None:
        one = OutgoingTransfer(1, 0, large().blocks, LARGE, due_ns=5)
        other = OutgoingTransfer(2, 0, large().blocks, 2 * LARGE, due_ns=6)
        await asyncio.gather(pair.sender.send(one), pair.sender.send(other))
        assert [one.request for one in pair.arrived] == [1, 2]
        assert not pair.events(0, "pool.suspended")

    for order in (Order.SMALLEST_FIRST, Order.EARLIEST_DEADLINE):
        preempting(scene, order=order)


def test_a_refusal_of_the_one_between_does_not_touch_the_other() -> None:
    async def scene(pair: Pair) -> None:
        pair.refuse.add(2)
        sending = asyncio.create_task(pair.sender.send(large()))
        await until(lambda: bool(pair.events(1, "kv.begin")))
        with pytest.raises(TransferError, match="not announced"):
            await pair.sender.send(transfer(2, TINY))
        await sending
        assert [one.request for one in pair.arrived] == [1]

    preempting(scene)


@pytest.mark.parametrize("discipline", [STANDING, Lanes()])
def test_a_stream_that_breaks_between_fails_both_and_is_replaced(
    discipline: DisciplineRule,
) -> None:
    async def scene(pair: Pair) -> None:
        await pair.sender.send(transfer(2, TINY))
        sending = asyncio.create_task(pair.sender.send(large()))
        await until(lambda: len(pair.events(1, "kv.begin")) == 2)
        with pytest.raises(TransferError):  # a duplicate, for which the connection is closed
            await pair.sender.send(transfer(2, TINY))
        with pytest.raises(TransferError):
            await sending
        await until(lambda: pair.sender._gate.state.broken == 0)
        await pair.sender.send(transfer(3))
        assert [one.request for one in pair.arrived] == [2, 3]
        assert (pair.sender._gate.state.busy, len(pair.sender._gate._loans)) == (0, 0)

    preempting(scene, discipline)


@pytest.mark.parametrize("discipline", [STANDING, Lanes()])
@pytest.mark.parametrize("goes", ["holder", "borrower"])
def test_whoever_goes_the_pool_recovers(discipline: DisciplineRule, goes: str) -> None:
    async def scene(pair: Pair) -> None:
        holder = asyncio.create_task(pair.sender.send(large()))
        await until(lambda: bool(pair.events(1, "kv.begin")))
        pair.gate.clear()
        borrower = asyncio.create_task(pair.sender.send(transfer(2, TINY)))
        await until(lambda: bool(pair.events(0, "pool.suspended")))
        await until(lambda: len(pair.events(1, "kv.begin")) == 2)
        (holder if goes == "holder" else borrower).cancel()
        results = await asyncio.gather(holder, borrower, return_exceptions=True)
        assert {type(one) for one in results} == {asyncio.CancelledError, TransferError}
        pair.gate.set()
        await pair.sender.send(transfer(3))
        assert (pair.sender._gate.state.busy, len(pair.sender._gate._loans)) == (0, 0)

    preempting(scene, discipline)


def test_a_borrower_that_leaves_before_it_began_lets_the_holder_go_on() -> None:
    async def scene(pair: Pair) -> None:
        holder = asyncio.create_task(pair.sender.send(large()))
        await until(lambda: bool(pair.events(1, "kv.begin")))
        borrower = asyncio.create_task(pair.sender.send(transfer(2, TINY)))
        await until(lambda: bool(pair.events(0, "pool.suspended")))
        borrower.cancel()
        await asyncio.gather(borrower, return_exceptions=True)
        if pair.events(0, "transfer.start")[-1]["req"] == 1:  # it had not begun
            await holder
            assert [one.request for one in pair.arrived] == [1]
        else:
            await asyncio.gather(holder, return_exceptions=True)
        await pair.sender.send(transfer(3))

    preempting(scene)


def interleaved(outer: Parcel, inner: list[Parcel], picks: list[int]) -> bytes:
    """The bytes of ``outer`` with each of ``inner`` in one of its gaps."""
    data, gap, left = b"", 0, list(inner)
    for piece in outer.pieces(gaps=True):
        match piece:
            case Gap():
                while left and picks[gap % len(picks)] > len(left):
                    data += b"".join(map(as_bytes, left.pop().pieces()))
                gap += 1
            case _:
                data += as_bytes(piece)
    return data


def as_bytes(piece: frame.Bytes | Pad | Gap) -> bytes:
    assert not isinstance(piece, Gap)
    return bytes(piece.count) if isinstance(piece, Pad) else bytes(piece)


@given(
    st.integers(1, 12), st.integers(0, 3), st.lists(st.integers(0, 4), min_size=1, max_size=9),
    st.booleans(),
)  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_any_transfers_in_any_gaps_are_read_whole(
    blocks: int, count: int, picks: list[int], verify_all: bool
) -> None:
    def parcel(request: int, size: int) -> Parcel:
        one = OutgoingTransfer(request, 0, [bytes([request]) * 50] * size, 9_000 * size)
        return Parcel(one, 9_000, verify_all)

    outer = parcel(9, blocks)
    data = interleaved(outer, [parcel(n, 2) for n in range(count)], picks)
    parser = read_transfers(frame.Hello("p1", "md1", 0, 1, verify_all, preempt=True), Epochs())
    step, offset, whole = next(parser), 0, list[int]()
    while offset < len(data) or isinstance(step, Begun | Complete):
        match step:
            case Begun():
                step = parser.send(memoryview(b""))
            case Complete(arrived, _):
                assert {bytes(one) for one in arrived.blocks} == {bytes([arrived.request]) * 50}
                whole.append(arrived.request)
                step = parser.send(memoryview(b""))
            case _:
                end = offset + step.count
                # nothing beyond the bytes that certainly follow may be waited for
                assert step.count <= step.ahead <= len(data) - offset
                piece = memoryview(data)[offset:end]
                step = parser.send(memoryview(b"") if isinstance(step, Skip) else piece)
                offset = end
    assert whole[-1] == 9
    assert len(whole) == len(set(whole))


def step(kind: Kind, req: int) -> Step:
    return Step(0, "p1", 0, kind, req, peer="md1", conn=0, wait_ns=0)


LOAN = [
    (Kind.POOL_QUEUED, 1), (Kind.POOL_ACQUIRED, 1), (Kind.POOL_QUEUED, 2),
    (Kind.POOL_SUSPENDED, 1), (Kind.POOL_ACQUIRED, 2), (Kind.POOL_RELEASED, 2),
    (Kind.POOL_RESUMED, 1), (Kind.POOL_RELEASED, 1),
]  # fmt: skip


def test_a_loan_is_one_connection_in_use_and_adds_up() -> None:
    replay, state = PoolReplay(), _State(1)
    for t, (kind, req) in enumerate(LOAN):
        replay.take(step(kind, req))
        state.advance(t, 0, 99)
        state.apply(kind, req, t, 0, 99)
    assert (replay.faults, replay.holders, replay.lent, replay.peak_busy) == ([], {}, {}, 1)
    # in nobody's use from 3 to 4 and from 5 to 6
    assert (state.busy, state.in_use, state.busy_ns) == ({}, 0, 4)


@pytest.mark.parametrize("missing", [3, 5])
def test_a_loan_that_nobody_gave_is_noticed(missing: int) -> None:
    replay = PoolReplay()
    for kind, req in LOAN[:missing] + LOAN[missing + 1 :]:
        replay.take(step(kind, req))
    assert replay.faults


def test_a_holder_that_goes_while_another_has_it_is_sound() -> None:
    replay, state = PoolReplay(), _State(1)
    for kind, req in (*LOAN[:5], (Kind.POOL_RELEASED, 1), (Kind.POOL_RELEASED, 2)):
        replay.take(step(kind, req))
        state.apply(kind, req, 0, 0, 99)
    assert (replay.faults, replay.holders, replay.lent) == ([], {}, {})
    assert (state.busy, state.in_use) == ({}, 0)
