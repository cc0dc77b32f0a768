"""The course of a run from its barrier until every client has ended, as the lab's program sees it.

Three things have a time: samples of the links (emulated time, so that their number does not
depend on the scale; breakpoints stand right behind them), looks at the lab (the lab's own time:
lost shaping is to be found within a second of it), and deeds, which are done to the lab on
purpose.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from testbed.contract.breakpoint import STEP_NS
from testbed.contract.fault import AgentFault, PlannedFault, ResetFault
from testbed.contract.plan import Plan
from testbed.contract.progress import Mark
from testbed.errors import LabError
from testbed.lab.faults import Faults, LabFault
from testbed.lab.guard import Guard
from testbed.lab.protocol import Agents
from testbed.lab.sampler import Sampler
from testbed.run.orders import Orders
from testbed.run.standstill import Standstill

_GRACE_NS = 5_000_000_000


@dataclass(frozen=True, slots=True)
class Deed:
    """What is done to the lab at one time of the run, in emulated nanoseconds since the barrier."""

    at_ns: int
    do: Callable[[Faults], None]


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


def planned_deeds(faults: Sequence[PlannedFault]) -> tuple[Deed, ...]:
    """Begin and end of every fault of a plan that the lab applies; at one moment ends come before
    begins. Agents apply theirs themselves."""
    outside = [fault for fault in faults if not isinstance(fault, AgentFault)]
    ends = [
        Deed(span.end_ns, partial(_end, fault))
        for fault in outside
        for span in fault.spans
        if span.end_ns is not None and not isinstance(fault, ResetFault)
    ]
    begins = [
        Deed(span.begin_ns, partial(_begin, fault)) for fault in outside for span in fault.spans
    ]
    return (*ends, *begins)


def _begin(fault: LabFault, faults: Faults) -> None:
    faults.begin(fault)


def _end(fault: LabFault, faults: Faults) -> None:
    faults.end(fault)


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
        agents.watch(min(until, barrier + scale.lab_ns(due[0].at_ns)) if due else until)
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
