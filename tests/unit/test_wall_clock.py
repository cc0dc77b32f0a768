"""A wall clock that jumps, and what does not jump with it: the time of agents and their waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from testbed_agents.clock import AgentClock, new_loop
from testbed_agents.wallclock import WallClock

pytestmark = pytest.mark.unit
HOUR = 3_600 * 10**9


@pytest.fixture
def wall() -> Iterator[WallClock]:
    names = ("time", "time_ns", "clock_gettime", "clock_gettime_ns")
    before = {name: getattr(time, name) for name in names}
    yield WallClock()
    for name, function in before.items():
        setattr(time, name, function)


@pytest.mark.parametrize("offset_ns", [HOUR, -HOUR])
def test_every_reading_of_the_wall_clock_jumps_and_comes_back(
    wall: WallClock, offset_ns: int
) -> None:
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.time_ns()
    wall.jump(offset_ns)
    wall.jump(offset_ns)  # not twice as far
    readings = (
        time.time_ns(), time.clock_gettime_ns(time.CLOCK_REALTIME),
        round(time.time() * 1e9), round(time.clock_gettime(time.CLOCK_REALTIME) * 1e9),
    )  # fmt: skip
    assert all(abs(one - before[1] - offset_ns) < 10**9 for one in readings)
    assert time.clock_gettime_ns(time.CLOCK_MONOTONIC) - before[0] < 10**9
    wall.jump(0)
    assert abs(time.time_ns() - before[1]) < 10**9


@pytest.mark.parametrize("offset_ns", [HOUR, -HOUR])
@pytest.mark.parametrize("virtual", [True, False])
def test_no_time_of_an_agent_jumps_with_it(wall: WallClock, offset_ns: int, virtual: bool) -> None:
    async def work() -> None:
        clock = AgentClock(time.time_ns(), virtual)
        began, mark = clock.now_ns(), clock.realtime_ns()
        wall.jump(offset_ns)
        assert 0 <= clock.now_ns() - began < 10**9
        assert 0 <= clock.realtime_ns() - mark < 10**9
        await clock.until(clock.now_ns() + 1_000_000)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(clock.seconds(1_000_000)):
                await clock.until(clock.now_ns() + HOUR)
        assert 0 <= clock.now_ns() - began < 5 * 10**9

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(work())
