"""The scenario that soaks use by default, planned once: what random schedules may act on."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from testbed.contract.fault import PlannedFault
from testbed.plan.faults import plan_faults
from testbed.run.prepare import Prepared, prepare
from testbed.soak.draw import Choice, draw_schedule, drawable
from testbed.soak.ground import Ground, ground_of
from testbed.soak.schedule import Schedule


@cache
def base(name: str = "soak") -> Prepared:
    """A base scenario, prepared."""
    return prepare(name, place=Path())


@cache
def ground(name: str = "soak") -> Ground:
    """Its ground."""
    return ground_of(base(name).scenario, base(name).plan, base(name).requests)


@cache
def choices(name: str = "soak") -> tuple[Choice, ...]:
    """What may be drawn on it."""
    return drawable(ground(name))


def drawn(seed: int, number: int, name: str = "soak") -> Schedule:
    """A schedule of the stream of a seed."""
    return draw_schedule(seed, number, ground(name), choices(name))


def planned(schedule: Schedule, name: str = "soak") -> tuple[PlannedFault, ...]:
    """A schedule as the planner takes it. Raises PlanError where it does not."""
    scenario, plan = base(name).scenario, base(name).plan
    file = scenario.file.model_copy(update={"faults": schedule.faults})
    return plan_faults(replace(scenario, file=file), plan.network, plan.seed, plan.scale, "mininet")
