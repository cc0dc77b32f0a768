"""Users that go: who, when, and what a client makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.ailment import Leave
from testbed_agents.leaving import Leaving, leaves
from tests.fakes.backstage import JumpClock
from tests.fakes.jump_loop import JumpLoop

pytestmark = pytest.mark.unit
MS = 10**6


def play(scene: Callable[[Leaving, JumpClock, list[int]], None], until_ms: int = 100) -> list[
    tuple[int, int, bool]
]:  # fmt: skip
    """What the client was told to leave: (when in ms, request, clean)."""
    left: list[tuple[int, int, bool]] = []

    async def main() -> None:
        clock = JumpClock()
        leaving = Leaving(clock)

        def leave(request: int, clean: bool) -> bool:
            left.append((clock.now_ns() // MS, request, clean))
            return request != 99

        leaving.leave = leave
        scene(leaving, clock, [])
        await clock.until(until_ms * MS)

    with asyncio.Runner(loop_factory=JumpLoop) as runner:
        runner.run(main())
    return left


def test_a_request_is_left_some_time_after_it_was_sent() -> None:
    def scene(leaving: Leaving, _: JumpClock, hit: list[int]) -> None:
        leaving.sent(1)
        fault = Leave(clean=True, share=1, seed=1, requests=(1, 2, 99), after_ns=30 * MS)
        leaving.begin(fault, hit.append)
        for request in (2, 3, 99):
            leaving.sent(request)
        leaving.end()
        leaving.sent(1)

    assert play(scene) == [(30, 2, True), (30, 99, True)]


def test_a_request_is_left_when_some_tokens_were_shown() -> None:
    told: list[int] = []

    def scene(leaving: Leaving, _: JumpClock, __: list[int]) -> None:
        leaving.begin(Leave(clean=False, share=1, seed=1, tokens=2), told.append)
        leaving.sent(4)
        leaving.end()
        for tokens in (1, 2, 3):
            leaving.shown(4, tokens)
        leaving.shown(5, 2)

    assert play(scene) == [(0, 4, False)]
    assert told == [4]


def test_who_had_ended_was_not_hit() -> None:
    told: list[int] = []

    def scene(leaving: Leaving, _: JumpClock, __: list[int]) -> None:
        fault = Leave(clean=False, share=1, seed=1, after_ns=0)
        for request in (99, 98):
            leaving.go(request, fault, told.append)

    play(scene)
    assert told == [98]


@given(st.integers(0, 2**32), st.floats(0.05, 0.95))
def test_a_share_is_a_chance_of_each_request(seed: int, share: float) -> None:
    fault = Leave(clean=True, share=share, seed=seed, after_ns=0)
    gone = [request for request in range(2_000) if leaves(fault, request)]
    assert gone == [request for request in range(2_000) if leaves(fault, request)]
    assert abs(len(gone) / 2_000 - share) < 0.08
