"""The course of a run from its barrier until every client has ended, as the lab's program sees it.

Three things have a time: samples of the links (emulated time, so that their number does not
depend on the scale; breakpoints stand right behind them), looks at the lab (the lab's own time:
lost shaping is to be found within a second of it), and deeds, which are done to the lab on
purpose.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.contract.breakpoint import STEP_NS
from testbed.contract.plan import Plan
from testbed.contract.progress import Mark
from testbed.errors import LabError
from testbed.lab.faults import Faults
from testbed.lab.guard import Guard
from testbed.lab.protocol import Agents
from testbed.lab.sampler import Sampler
from testbed.run.awaited import Awaited
from testbed.run.deed import Deed
from testbed.run.orders import Orders
from testbed.run.standstill import Standstill

_GRACE_NS = 5_000_000_000


@dataclass(frozen=True, slots=True)
class Course:
    """Who takes part in it."""

    agents: Agents
    sampler: Sampler
    guard: Guard
    faults: Faults
    mark: Mark
    standstill: Standstill | None = None
    """None where the plan has no breakpoints."""
    orders: Orders | None = None
    """None under the virtual clock, which nobody outside can follow."""
    awaited: Awaited | None = None


def take_course(plan: Plan, course: Course, deeds: Sequence[Deed] = ()) -> None:
    """Returns when every client has ended.

    Raises:
        AgentError: an agent failed, or ended before it was told to.
        FidelityError: the lab is not what the plan promised any more.
        LabError: a deed cannot be done, or a client outlived its deadline.
    """
    scale, agents, barrier = plan.scale, course.agents, course.agents.barrier_ns
    due = deque(sorted(deeds, key=lambda deed: deed.at_ns))
    sample, look = barrier, barrier
    step_ns = scale.lab_ns(STEP_NS)
    deadline = barrier + scale.lab_ns(plan.agents[0].window.deadline_ns) + _GRACE_NS
    while not agents.clients_ended():
        until = min(sample, look)
        if due:
            until = min(until, barrier + scale.lab_ns(due[0].at_ns))
        agents.watch(until, None if course.awaited is None else course.awaited.news)
        if course.awaited is not None:
            now_ns = scale.emulated_ns(time.time_ns() - barrier)
            due = deque(sorted((*due, *course.awaited.come(now_ns)), key=lambda deed: deed.at_ns))
        while due and time.time_ns() >= barrier + scale.lab_ns(due[0].at_ns):
            due.popleft().do(course.faults)
        now = time.time_ns()
        if now >= look:
            course.guard.look(now - barrier)
            if course.orders is not None:
                course.orders.take(course.faults, scale.emulated_ns(now - barrier))
            look = _after(now, look, STEP_NS)
        if now >= sample:
            if sample > barrier:  # where all agents wake at once nothing is on its way yet
                course.sampler.lateness.wait(scale.emulated_ns(now - sample))
            course.sampler.sample(scale.emulated_ns(sample - barrier))
            if course.standstill is not None:
                course.standstill.reached(scale.emulated_ns(sample - barrier), now)
            sample = _after(now, sample, step_ns)
            course.mark.touch(time.time_ns())
        if sample > deadline:
            raise LabError("end the run", plan.scenario, "a client outlived its deadline")
    course.sampler.sample(scale.emulated_ns(time.time_ns() - barrier))
    course.guard.conclude()


def _after(now: int, due: int, step: int) -> int:
    """The next time of a series; what was missed because something took long is left out."""
    return due + step * (1 + (now - due) // step)
