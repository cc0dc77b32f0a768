"""An agent that hears late, or not: in order, and everything in the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from testbed_agents.control.silence import Silence
from tests.fakes.backstage import JumpClock
from tests.fakes.jump_loop import JumpLoop

pytestmark = pytest.mark.unit
MS = 10**6


def heard(
    *steps: tuple[int, Callable[[Silence], None]], until_ms: int = 100
) -> list[tuple[int, bytes]]:
    """Does each step at its time (ms); returns what was heard when."""
    told: list[tuple[int, bytes]] = []

    async def main() -> None:
        clock = JumpClock()
        silence = Silence(lambda message: told.append((clock.now_ns() // MS, message)))
        for at_ms, step in steps:
            await clock.until(at_ms * MS)
            step(silence)
        await clock.until(until_ms * MS)

    with asyncio.Runner(loop_factory=JumpLoop) as runner:
        runner.run(main())
    return told


def test_everything_is_heard_as_much_later() -> None:
    assert heard(
        (0, lambda silence: silence.begin(0.02)),
        (1, lambda silence: silence.hold(b"a")),
        (5, lambda silence: silence.hold(b"b")),
    ) == [(21, b"a"), (25, b"b")]


def test_the_end_lets_everything_be_heard_at_once_and_in_order() -> None:
    assert heard(
        (0, lambda silence: silence.begin(0.02)),
        (1, lambda silence: silence.hold(b"a")),
        (10, lambda silence: silence.hold(b"b")),
        (25, lambda silence: silence.hold(b"c")),
        (26, lambda silence: silence.end()),
        (27, lambda silence: silence.begin(None)),
        (28, lambda silence: silence.hold(b"d")),
    ) == [(21, b"a"), (26, b"b"), (26, b"c")]


def test_without_a_delay_nothing_is_heard_before_the_end() -> None:
    assert heard(
        (0, lambda silence: silence.begin(None)),
        (1, lambda silence: silence.hold(b"a")),
        (90, lambda silence: silence.end()),
    ) == [(90, b"a")]
