"""The plan: a pure function of scenario, requests, seed and host facts.

::

    Scenario ─roster─> names, addresses ─(workload.draw)─> requests, Offered
        └──────────────────────┴───────────── make_plan ─────────────┴──> Plan
"""

from __future__ import annotations

from typing import Literal

from testbed.contract.agent import Request
from testbed.contract.plan import Guest, Offered, Plan
from testbed.contract.role import Role
from testbed.contract.scale import FULL, Scale, paced
from testbed.plan.agents import agent_configs
from testbed.plan.demand import demand_of
from testbed.plan.derive import derived_seed
from testbed.plan.dimension import dimensions
from testbed.plan.estimate import estimate, memory_parts, refuse_what_will_not_fit
from testbed.plan.faults import agent_faults, plan_faults
from testbed.plan.guestpath import RunPaths
from testbed.plan.hostfacts import HostFacts
from testbed.plan.network import build_network
from testbed.plan.refuse import (
    refuse_clock_and_place,
    refuse_requests,
    refuse_serving,
    refuse_unknown_names,
)
from testbed.plan.roster import roster
from testbed.plan.summary import summary
from testbed.scenario.value import Scenario

GUEST_START_NS = 1_767_225_600 * 10**9
"""2026-01-01T00:00:00Z: every guest boots at the same moment."""
BARRIER_AFTER_NS = 60 * 10**9
"""Virtual time for building the lab and loading models; it costs no wall time."""


def make_plan(
    scenario: Scenario,
    requests: tuple[Request, ...],
    offered: Offered,
    seed: int,
    host: HostFacts,
    lab: Literal["mininet", "compose"],
    clock: Literal["virtual", "real"],
    on: Literal["guest", "host"],
    paths: RunPaths,
    start_ns: int = GUEST_START_NS,
    scale: Scale = FULL,
) -> Plan:
    """Resolve everything that a run is, touching nothing.

    Args:
        start_ns: CLOCK_REALTIME at which the guest boots; under a real clock the
            caller gives the present.
        scale: how the scenario was made smaller, and the slow motion that is to come.

    Raises:
        PlanError: the combination cannot be true, a bound names a link that is not there, or
            a request cannot be served.
        HostError: the run does not fit this machine.
    """
    refuse_clock_and_place(scenario, clock, on, scale)
    refuse_serving(scenario)
    members = roster(scenario)
    refuse_requests(scenario, requests, frozenset(member.name for member in members))
    network = build_network(scenario, members, seed, lab)
    refuse_unknown_names(scenario, network)
    barrier_ns = start_ns + BARRIER_AFTER_NS
    wanted = estimate(
        scenario, network, requests, len(members), clock == "virtual", BARRIER_AFTER_NS / 1e9,
        lab, scale.slow,
    )  # fmt: skip
    largest = memory_parts(scenario, network, len(members), len(requests), lab)[0]
    refuse_what_will_not_fit(scenario.name, wanted, host, largest)
    prices = scenario.file.prices
    built = paced(network, scale.slow)
    faults = plan_faults(scenario, built, seed, scale, lab)
    agents = agent_configs(scenario, members, requests, seed, barrier_ns, paths, scale.slow)
    counts = {role: scenario.count(role) for role in Role}
    return Plan(
        scenario=scenario.name,
        seed=seed,
        lab=lab,
        clock=clock,
        host=on,
        guest=Guest(
            memory_bytes=wanted.guest_memory_bytes,
            entropy_seed=derived_seed(seed, "guest", "entropy"),
            start_ns=start_ns,
            barrier_ns=barrier_ns,
        ),
        scale=scale,
        demand=demand_of(scenario, requests, scale.slow) if clock == "real" else None,
        network=built,
        agents=tuple(
            agent.model_copy(update={"faults": agent_faults(faults, agent.node)})
            for agent in agents
        ),
        faults=faults,
        defects=scenario.file.defects,
        offered=offered,
        estimate=wanted,
        model=scenario.file.model.name,
        level=scenario.file.sla.resolve(),
        cost=None if prices is None else prices.resolve(counts),
        summary=(
            *(dimensions(scenario, requests, scale) if clock == "real" or not scale.full else ()),
            *summary(scenario, offered, len(requests)),
        ),
    )
