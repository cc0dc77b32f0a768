"""The agents' clock: never early, and not rounded to milliseconds."""

from __future__ import annotations

import asyncio
import io
import json
import selectors
import socket
import time
from collections.abc import Coroutine

import pytest

from testbed.contract.event import EventLog
from testbed.contract.lateness import bound_ns
from testbed_agents.clock import AgentClock, new_loop
from testbed_agents.event_loop import PreciseSelector


def run(work: Coroutine[None, None, None]) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(work)


def test_waiting_is_never_early_and_not_rounded_to_milliseconds() -> None:
    async def work() -> None:
        clock = AgentClock(time.time_ns())
        late_ns: list[int] = []
        for _ in range(50):
            wanted_ns = clock.now_ns() + 100_000
            await clock.until(wanted_ns)
            late_ns.append(clock.now_ns() - wanted_ns)
        assert min(late_ns) >= 0
        assert min(late_ns) < 800_000  # a millisecond's rounding makes at least 900 us

    run(work())


def test_a_time_that_is_past_does_not_wait() -> None:
    async def work() -> None:
        clock = AgentClock(time.time_ns() - 1_000_000)
        await clock.until(0)
        await clock.spend(0)
        await clock.spend(-5)

    run(work())


def test_cancelled_waits_leave_no_timer_that_matters() -> None:
    async def work() -> None:
        clock = AgentClock(time.time_ns())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await clock.until(10**12)

    run(work())


def test_now_counts_from_the_barrier() -> None:
    clock = AgentClock(time.time_ns() + 10**12)
    assert -(10**12) <= clock.now_ns() < -(10**11)


def test_the_selector_reports_what_is_ready_and_for_what() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, PreciseSelector() as selector:
        key = selector.register(ours, selectors.EVENT_READ | selectors.EVENT_WRITE, "data")
        assert selector.select(0) == [(key, selectors.EVENT_WRITE)]
        theirs.send(b"x")
        assert selector.select(None) == [(key, selectors.EVENT_READ | selectors.EVENT_WRITE)]
        selector.modify(ours, selectors.EVENT_READ, "other")
        assert selector.get_key(ours).data == "other"
        ours.recv(1)
        assert selector.select(0.0005) == []
        with pytest.raises(KeyError):
            selector.register(ours, selectors.EVENT_READ)
        selector.unregister(ours)
        assert len(selector.get_map()) == 0


def test_the_selector_forgets_a_closed_socket() -> None:
    ours, theirs = socket.socketpair()
    with theirs, PreciseSelector() as selector:
        selector.register(ours, selectors.EVENT_READ)
        ours.close()
        assert selector.unregister(ours).fileobj is ours


def test_the_selector_looks_at_descriptors_only_now_and_then_while_there_is_work() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, PreciseSelector() as selector:
        key = selector.register(ours, selectors.EVENT_WRITE)
        seen = [selector.select(0) for _ in range(33)]
    looked = [turn for turn, ready in enumerate(seen) if ready == [(key, selectors.EVENT_WRITE)]]
    assert looked == [0, 16, 32]
    assert all(not ready for turn, ready in enumerate(seen) if turn not in looked)


def spin(seconds: float) -> str:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass
    return "done"


def test_computing_takes_its_profile_and_not_the_sum() -> None:
    late: list[tuple[int, int]] = []

    async def work() -> None:
        clock = AgentClock(time.time_ns(), late=lambda *times: late.append(times))
        began = clock.now_ns()
        assert await clock.during(80_000_000, lambda: spin(0.06)) == "done"
        took = clock.now_ns() - began
        assert 80_000_000 <= took < 130_000_000

    run(work())
    assert late == []


def test_computing_that_takes_longer_than_its_profile_is_told() -> None:
    late: list[tuple[int, int]] = []

    async def work() -> None:
        clock = AgentClock(time.time_ns(), late=lambda *times: late.append(times))
        assert await clock.during(1_000_000, lambda: spin(0.02)) == "done"

    run(work())
    ((profile_ns, took_ns),) = late
    assert profile_ns == 1_000_000
    assert took_ns >= 20_000_000


def test_under_the_virtual_clock_computing_comes_last_and_takes_nothing() -> None:
    late: list[tuple[int, int]] = []

    async def work() -> None:
        clock = AgentClock(time.time_ns(), virtual=True, late=lambda *times: late.append(times))
        began = time.perf_counter()
        started = await clock.during(50_000_000, time.perf_counter)
        assert started - began >= 0.04  # two clocks of the machine, and it may be busy

    run(work())
    assert late == []


def test_slow_motion_takes_longer_on_the_machine_and_as_long_in_emulated_time() -> None:
    late: list[tuple[int, int]] = []

    async def work() -> None:
        clock = AgentClock(time.time_ns(), late=lambda *times: late.append(times), slow=4.0)
        began, machine = clock.now_ns(), time.monotonic()
        await clock.during(20_000_000, lambda: spin(0.06))
        took = clock.now_ns() - began
        assert time.monotonic() - machine >= 0.08
        assert 20_000_000 <= took < 40_000_000
        assert clock.seconds(10**9) == 4.0

    run(work())


def test_slow_motion_never_lets_a_wait_end_early() -> None:
    async def work() -> None:
        clock = AgentClock(time.time_ns(), slow=3.7)
        for t in (10_000_000, 12_345_679, 20_000_001):
            await clock.until(t)
            assert clock.now_ns() >= t

    run(work())


def test_lateness_is_counted_once_the_barrier_is_passed() -> None:
    stream = io.StringIO()

    async def work() -> None:
        clock = AgentClock(time.time_ns() + 20_000_000)
        await clock.until(0)
        await clock.until(clock.now_ns() + 50_000_000)  # however late the first one ended
        await clock.during(1_000_000, lambda: spin(0.01))
        log = EventLog(stream, "p1", clock)
        clock.lateness.tell(log)
        log.flush()

    run(work())
    told = json.loads(stream.getvalue())
    assert (told["kind"], told["steps"], told["late"]) == ("clock.tally", 1, 1)
    assert sum(told["waits"].values()) == 1


def test_a_virtual_clock_counts_nothing() -> None:
    async def work() -> None:
        clock = AgentClock(time.time_ns(), virtual=True)
        await clock.during(1_000_000, lambda: spin(0.005))
        log = EventLog(stream, "p1", clock)
        clock.lateness.tell(log)
        log.flush()

    stream = io.StringIO()
    run(work())
    told = json.loads(stream.getvalue())
    assert (told["waits"], told["steps"]) == ({}, 0)


def test_a_step_without_a_time_counts_as_a_late_wait_and_not_as_a_late_step() -> None:
    late: list[tuple[int, int]] = []
    stream = io.StringIO()

    async def work() -> None:
        clock = AgentClock(time.time_ns(), late=lambda *times: late.append(times))
        assert await clock.during(0, lambda: spin(0.01)) == "done"
        log = EventLog(stream, "p1", clock)
        clock.lateness.tell(log)
        log.flush()

    run(work())
    told = json.loads(stream.getvalue())
    assert late == []
    assert (told["steps"], told["late"]) == (0, 0)
    ((bucket, count),) = told["waits"].items()
    assert bound_ns(int(bucket)) >= 10_000_000
    assert count == 1
