"""From a scenario's name to everything that decides a run: requests, plan, provenance. Pure
apart from reading files and facts of the host; touches nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from testbed.contract.agent import Request
from testbed.contract.plan import Plan
from testbed.contract.role import Role
from testbed.contract.scale import FULL
from testbed.errors import HostError, UsageError
from testbed.lab.program import run_module
from testbed.plan import GUEST_START_NS, RunPaths, capacity, make_plan, names_of, roster
from testbed.plan.scale import scaled
from testbed.run.hostfacts import read_host_facts
from testbed.scenario import Scenario, load_scenario
from testbed.scenario.load import scenario_path
from testbed.scenario.workload import TraceArrivals
from testbed.workload import draw, load_trace

GUEST_WEIGHTS = "/mnt/weights"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that could start now."""

    scenario: Scenario
    """As it was written: the plan says at which scale it is run."""
    plan: Plan
    requests: tuple[Request, ...]
    weights: Path | None
    """Flat weights file on this host, where the model has one."""


def prepare(
    name_or_path: str,
    overrides: tuple[str, ...] = (),
    seed: int | None = None,
    lab: Literal["mininet", "compose"] | None = None,
    clock: Literal["virtual", "real"] | None = None,
    on: Literal["guest", "host"] | None = None,
    place: Path = Path("runs"),
    at_scale: bool = False,
) -> Prepared:
    """Reads, checks, draws and plans.

    Args:
        place: where the run folder will be made.
        at_scale: apply ``real_time`` under the virtual clock, too.

    Raises:
        ScenarioError, PlanError, UsageError: the scenario or the call is wrong.
        HostError: this machine cannot run it.
    """
    if seed is not None:
        overrides = (*overrides, f"seed={seed}")  # so that scenario.yaml of the run names it
    written = load_scenario(name_or_path, overrides)
    scenario, scale = written, FULL
    chosen = scenario.seed
    lab = lab or scenario.lab
    clock = clock or scenario.clock
    on = on or "guest"
    if clock == "virtual" and on == "host":
        raise UsageError(
            "run with --clock virtual --on host", scenario.name,
            "the host's clock cannot be made to jump", "leave out --on, or take --clock real",
        )  # fmt: skip
    if clock == "real" or at_scale:
        scenario, scale = scaled(written, written.file.real_time)
    weights = weights_file(scenario.file.model.name)
    arrivals = scenario.workload.arrivals
    trace = None
    if isinstance(arrivals, TraceArrivals):
        folder = scenario_path(name_or_path).parent
        trace = load_trace(folder / arrivals.file, arrivals.take, arrivals.format)
    members, wan = roster(scenario), capacity(scenario)
    requests, offered = draw(
        scenario.workload,
        scenario.shape,
        names_of(members, Role.PREFILL),
        names_of(members, Role.DECODE),
        scenario.window,
        chosen,
        wan.leg_payload_bps,
        wan.legs,
        trace,
        spans_wanted=scenario.file.serving is not None,
    )
    plan = make_plan(
        scenario,
        requests,
        offered,
        seed=chosen,
        host=read_host_facts(place),
        lab=lab,
        clock=clock,
        on=on,
        paths=RunPaths(weights=None if weights is None else f"{GUEST_WEIGHTS}/{weights.name}"),
        start_ns=GUEST_START_NS if clock == "virtual" else time.time_ns(),
        scale=scale,
    )
    return Prepared(written, plan, requests, weights)


def weights_file(model: str) -> Path | None:
    """The flat weights of a model that has any, converted at first use.

    Runs as a process of its own: the orchestrator never loads torch.
    """
    if model == "nano":
        return None
    done = run_module("testbed_agents.model.convert")
    if done.status != 0:
        raise HostError("convert the model's weights", model, done.err.strip(), "make setup")
    return Path(done.out.strip().splitlines()[-1])
