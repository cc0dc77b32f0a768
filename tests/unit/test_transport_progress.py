"""How far a transfer is: told once, in order, and not of another one."""

from __future__ import annotations

import asyncio

import pytest

from testbed_agents.transport import TransferError
from tests.fakes.kv_pair import Pair, run, transfer

pytestmark = pytest.mark.unit


def test_the_progress_of_one_transfer_is_told_once_and_in_order() -> None:
    told: list[tuple[str, int]] = []

    async def scene(pair: Pair) -> None:
        for name, share in (("whole", 1.0), ("begin", 0.0), ("half", 0.5)):
            pair.sender.progress.watch(2, share, lambda req, name=name: told.append((name, req)))
        for n in (7, 8, 9):
            await pair.sender.send(transfer(n))

    run(scene)
    assert told == [("begin", 8), ("half", 8), ("whole", 8)]


@pytest.mark.parametrize("stripes", [1, 2])
def test_what_the_receiver_does_not_take_is_not_on_the_wire(stripes: int) -> None:
    told: list[str] = []

    async def scene(pair: Pair) -> None:
        early, late = asyncio.Event(), asyncio.Event()
        pair.sender.progress.watch(1, 0.001, lambda _: (told.append("early"), early.set()))
        pair.sender.progress.watch(1, 0.9, lambda _: (told.append("late"), late.set()))
        pair.receiver.hold(True)
        sending = asyncio.create_task(pair.sender.send(transfer(1, 8_000_000)))
        async with asyncio.timeout(10):
            await early.wait()
        assert told == ["early"]
        pair.receiver.hold(False)
        await sending
        assert told == ["early", "late"]

    run(scene, stripes=stripes, timeout_s=10)


def test_a_transfer_that_fails_does_not_reach_what_it_never_sent() -> None:
    told: list[int] = []

    async def scene(pair: Pair) -> None:
        pair.sender.progress.watch(1, 0.9, told.append)
        pair.receiver.hold(True)
        with pytest.raises(TransferError, match="timeout"):
            await pair.sender.send(transfer(1, 8_000_000))
        pair.receiver.hold(False)
        await pair.sender.send(transfer(2))

    run(scene, timeout_s=0.2)
    assert told == []
