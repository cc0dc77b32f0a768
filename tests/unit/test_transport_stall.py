"""When a connection counts as stalled: its peer's kernel owes an answer, and says nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed_agents.transport.stall import (
    ROUND_TRIPS,
    SILENCE_MS,
    StallWatch,
    is_stalled,
    silence_bound_ms,
)
from testbed_agents.transport.tcp_info import TcpInfo
from tests.fakes.jump_loop import JumpLoop

pytestmark = pytest.mark.unit

QUICK = TcpInfo(
    rtt_us=20_000, rttvar_us=1_000, min_rtt_us=20_000, cwnd=10, lost=0, total_retrans=0,
    delivery_bps=0,
)  # fmt: skip


@given(silent=st.integers(0, 10**7), rtt=st.integers(0, 10**8), owed=st.integers(0, 100))
def test_only_who_owes_an_answer_for_long_is_stalled(silent: int, rtt: int, owed: int) -> None:
    info = replace(QUICK, silent_ms=silent, rtt_us=rtt, owed=owed)
    bound = silence_bound_ms(info)
    assert bound >= max(SILENCE_MS, ROUND_TRIPS * rtt // 1_000)
    assert is_stalled(info) == (owed > 0 and silent >= bound)


def test_in_slow_motion_silence_is_emulated_time() -> None:
    assert replace(QUICK, silent_ms=4_000).emulated(4).silent_ms == 1_000


def watched(*views: TcpInfo | None) -> tuple[list[int], list[float]]:
    """What a watch says of a connection that looks like ``views``, and when it looked."""
    said: list[int] = []
    looked: list[float] = []

    async def play() -> None:
        loop = asyncio.get_running_loop()
        began, left = loop.time(), list(views)

        def look() -> TcpInfo | None:
            looked.append(round(loop.time() - began, 3))
            return left.pop(0) if left else None

        StallWatch(look, 1.0, said.append).start()
        await asyncio.sleep(60)

    with asyncio.Runner(loop_factory=JumpLoop) as runner:
        runner.run(play())
    return said, looked


def test_a_watch_looks_when_silence_could_be_too_long_and_speaks_once() -> None:
    heard = replace(QUICK, owed=3, silent_ms=400)
    silent = replace(QUICK, owed=3, silent_ms=1_000)
    assert watched(heard, silent, silent) == ([1_000], [1.0, 1.6])


def test_a_receiver_that_answers_is_never_stalled() -> None:
    said, looked = watched(*[replace(QUICK, owed=0, silent_ms=90_000)] * 5)
    assert said == []
    assert looked == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_an_ended_watch_looks_no_more() -> None:
    looked: list[int] = []

    async def play() -> None:
        watch = StallWatch(lambda: looked.append(1), 1.0, looked.append)
        watch.start()
        watch.end()
        watch.end()
        await asyncio.sleep(5)

    with asyncio.Runner(loop_factory=JumpLoop) as runner:
        runner.run(play())
    assert looked == []
