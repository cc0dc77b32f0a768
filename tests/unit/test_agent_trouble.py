"""Faults that an agent applies to itself: at their times, undone, and written into its record."""

from __future__ import annotations

import asyncio
import io
import json
import os
import resource
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.agent import AgentConfig
from testbed.contract.ailment import AgentEffect, FewDescriptors, SlowCompute, Stall
from testbed.contract.event import EventLog
from testbed.contract.fault import AgentFault, Span
from testbed.contract.role import Role
from testbed.errors import AgentError
from testbed_agents.descriptors import limit_for
from testbed_agents.trouble import Trouble
from tests.fakes.backstage import JumpClock
from tests.fakes.jump_loop import JumpLoop
from tests.fakes.kv_pair import make_config

pytestmark = pytest.mark.unit
MS = 10**6


@dataclass
class Held:
    """A receiver that notes when it is held."""

    clock: JumpClock
    told: list[tuple[int, bool]] = field(default_factory=list)

    def hold(self, held: bool) -> None:
        self.told.append((self.clock.now_ns(), held))

    def refrain(self, backlog: int | None) -> None:
        self.told.append((self.clock.now_ns(), backlog is not None))


def fault(name: str, effect: AgentEffect, *spans: tuple[int, int | None]) -> AgentFault:
    moments = tuple(
        Span(begin_ns=begin * MS, end_ns=None if end is None else end * MS) for begin, end in spans
    )
    return AgentFault(name=name, spans=moments, nodes=("md1",), effect=effect)


def suffer(
    *faults: AgentFault,
    during: Callable[[Trouble, JumpClock], Coroutine[None, None, None]],
) -> list[tuple[int, str, str]]:
    """Runs ``during`` beside the faults; returns what the record says of them."""
    stream = io.StringIO()
    clock = JumpClock()
    log = EventLog(stream, "md1", clock)
    config: AgentConfig = make_config(Role.DECODE)(1024).model_copy(update={"faults": faults})
    trouble = Trouble(config, clock, log)

    async def main() -> None:
        trouble.start()
        await trouble.beside(during(trouble, clock))

    with asyncio.Runner(loop_factory=JumpLoop) as runner:
        runner.run(main())
    log.flush()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    return [(line["t"], line["kind"], line["fault"]) for line in lines]


def test_a_step_takes_longer_while_it_is_slow() -> None:
    took: list[int] = []

    async def steps(_: Trouble, clock: JumpClock) -> None:
        for _step in range(6):
            began = clock.now_ns()
            await clock.during(10 * MS, lambda: None)
            took.append(clock.now_ns() - began)

    told = suffer(fault("slow", SlowCompute(factor=3.0), (15, 45)), during=steps)
    assert took == [10 * MS, 10 * MS, 30 * MS, 10 * MS, 10 * MS, 10 * MS]
    assert told == [(15 * MS, "fault.began", "slow"), (45 * MS, "fault.ended", "slow")]


def test_receivers_are_held_and_released() -> None:
    held: list[Held] = []

    async def wait(trouble: Trouble, clock: JumpClock) -> None:
        held.append(Held(clock))
        trouble.receivers.append(held[0])
        await clock.until(100 * MS)

    suffer(fault("stall", Stall(), (10, 20), (50, None)), during=wait)
    assert held[0].told == [(10 * MS, True), (20 * MS, False), (50 * MS, True)]


def test_an_agent_without_receivers_cannot_stall() -> None:
    async def wait(_: Trouble, clock: JumpClock) -> None:
        await clock.until(100 * MS)

    with pytest.raises(ExceptionGroup) as caught:
        suffer(fault("stall", Stall(), (10, 20)), during=wait)
    assert isinstance(caught.value.exceptions[0], AgentError)


def test_descriptors_run_out_and_come_back() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened: list[int] = []

    async def open_some(_: Trouble, clock: JumpClock) -> None:
        await clock.until(15 * MS)
        opened.extend(os.open("/dev/null", os.O_RDONLY) for _ in range(2))
        with pytest.raises(OSError, match="Too many open files"):
            os.open("/dev/null", os.O_RDONLY)
        await clock.until(25 * MS)
        opened.append(os.open("/dev/null", os.O_RDONLY))

    try:
        suffer(fault("few", FewDescriptors(left=2), (10, 20)), during=open_some)
    finally:
        for descriptor in opened:
            os.close(descriptor)
    assert len(opened) == 3
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


def test_without_faults_nothing_is_started() -> None:
    async def nothing(_: Trouble, clock: JumpClock) -> None:
        assert len(asyncio.all_tasks()) == 1

    assert suffer(during=nothing) == []


@given(st.frozensets(st.integers(0, 40), max_size=30), st.integers(0, 10))
def test_a_limit_leaves_exactly_as_many_numbers_free(taken: frozenset[int], left: int) -> None:
    limit = limit_for(taken, left)
    assert len(set(range(limit)) - taken) == left
    assert limit not in taken
