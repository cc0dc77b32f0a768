"""What cannot be true or is not built yet, refused before a run folder exists."""

from __future__ import annotations

import math

from testbed.contract.agent import Request
from testbed.contract.network import Network
from testbed.contract.role import Role
from testbed.contract.scale import Scale
from testbed.errors import PlanError
from testbed.plan.faults import fault_names
from testbed.scenario.value import Scenario

LIVE_LIMIT_BPS = 20_000_000_000
"""A live host moves 1 to 20 Gbit/s through veth and netem packet by packet; at 400 Gbit/s
a frame lasts 30 ns, less than the kernel needs for it."""


def refuse_clock_and_place(scenario: Scenario, clock: str, on: str, scale: Scale) -> None:
    """Refuse a virtual clock on the host, and rates that no live host carries at this scale.

    Raises:
        PlanError: with the reason and what to change.
    """
    if clock == "virtual" and on == "host":
        raise PlanError(
            "plan",
            scenario.name,
            "the host's clock cannot be virtual: only the lab guest's kernel jumps through time",
            "use --on guest, or --clock real",
        )
    if clock == "real" and scenario.file.breakpoints:
        raise PlanError(
            "plan", scenario.name, "the host's clock does not stand still at breakpoints",
            "use --clock virtual, or leave them out: --set breakpoints=[]",
        )  # fmt: skip
    limit_bps = LIVE_LIMIT_BPS * scale.slow
    fast = {name: spec.rate_bps for name, spec in scenario.links if spec.rate_bps > limit_bps}
    if clock == "real" and fast:
        times = max(fast.values()) / limit_bps
        raise PlanError(
            "plan",
            scenario.name,
            f"links of class {', '.join(fast)} are faster than {LIVE_LIMIT_BPS // 10**9} "
            f"Gbit/s on the host's clock (size {scale.size:.3%}, slow {scale.slow:g}), which no "
            "live host carries packet by packet",
            f"scale further down: --set real_time.slow={math.ceil(scale.slow * times)}, or "
            f'--set real_time.size="{100 * scale.size / times:.2f} %"',
        )


def refuse_serving(scenario: Scenario) -> None:
    """Refuse a serving plane without its agents, and agents without a serving plane.

    Raises:
        PlanError: naming the topology's parameter to change.
    """
    serving, routers = scenario.file.serving, scenario.count(Role.ROUTER)
    relays = scenario.count(Role.RELAY)
    for wrong, parameter, cause, remedy in (
        (
            serving is None and routers > 0,
            "router",
            "there is a router and no serving plane",
            "set router to 0, or add serving",
        ),
        (
            serving is None and relays > 0,
            "relay",
            "relay decode needs a serving plane",
            "set relay to 0, or add serving",
        ),
        (
            serving is not None and routers != 1,
            "router",
            f"a serving plane has one router, not {routers}",
            "set router to 1",
        ),
        (
            serving is not None and relays == 0 and serving.pipeline.kind == "relay-only",
            "relay",
            "the pipeline needs an RLD",
            "raise relay, or choose another pipeline",
        ),
    ):
        if wrong:
            raise PlanError("plan", f"topology.parameters.{parameter}", cause, remedy)
    if serving is not None and serving.pipeline.kind in ("prfaas", "prfaas-pdd"):
        _refuse_one_cluster(scenario)
    _refuse_idle_settings(scenario)


def _refuse_idle_settings(scenario: Scenario) -> None:
    """A price table without a role that is there, and hardware of P beside an MD where none is."""
    prices = scenario.file.prices
    priced = set() if prices is None else {role for role, _ in prices.chosen()}
    for role in (Role.PREFILL, Role.RELAY, Role.DECODE):
        if prices is not None and role not in priced and scenario.count(role) > 0:
            raise PlanError(
                "plan", f"prices.instances.{role.value}",
                f"is missing, and a cost without its {scenario.count(role)} instances is too low",
                "say which nodes one instance has, or leave prices out",
            )  # fmt: skip
    if scenario.near_prefill is None:
        return
    if not _sites(scenario, Role.PREFILL) & _sites(scenario, Role.DECODE):
        raise PlanError(
            "plan", "serving.hardware.near_prefill", "no P shares its site with an MD",
            "leave it out, or choose another topology",
        )  # fmt: skip


def _sites(scenario: Scenario, role: Role) -> set[str]:
    return {place.site for place in scenario.layout.where(role)}


def _refuse_one_cluster(scenario: Scenario) -> None:
    """Prefill as a service needs P beside an MD and P elsewhere."""
    prefills, decodes = _sites(scenario, Role.PREFILL), _sites(scenario, Role.DECODE)
    for sites, where in ((prefills & decodes, "beside"), (prefills - decodes, "away from")):
        if not sites:
            raise PlanError(
                "plan",
                "topology.name",
                f"the pipeline chooses where to prefill, but no P stands {where} MD",
                "use the topology prfaas, or choose another pipeline",
            )


def refuse_unknown_names(scenario: Scenario, network: Network) -> None:
    """Refuse bounds on links and instances that the plan does not have.

    Raises:
        PlanError: naming those that there are.
    """
    links = sorted(link.name for link in network.links)
    serving = scenario.file.serving
    cached = {Role.PREFILL, Role.DECODE}
    if serving is not None and serving.caches.relay.bytes > 0:
        cached.add(Role.RELAY)
    instances = sorted(node.name for node in network.nodes if node.role in cached)
    for what, named, known in (
        ("link", scenario.expect.links, links),
        ("fault", scenario.expect.faults, sorted(fault_names(scenario))),
        ("instance", scenario.expect.instances, instances),
    ):
        for name in sorted(named.difference(known)):
            bounds = [metric for metric in scenario.expect.metrics if f".{name}." in metric]
            raise PlanError(
                "plan",
                f"expect.metrics.{bounds[0]}",
                f"the {'plan' if what == 'fault' else 'network'} has no {what} {name!r}",
                f"{what}s of this plan: {', '.join(known) or 'none'}",
            )


def refuse_requests(
    scenario: Scenario, requests: tuple[Request, ...], names: frozenset[str]
) -> None:
    """Refuse requests that the plan cannot serve.

    Raises:
        PlanError: none at all, unknown instances, or real KV larger than emulated bytes.
    """
    if not requests:
        raise PlanError(
            "plan", scenario.name, "the workload has no requests", "raise the rate or the window"
        )
    shape = scenario.shape
    kv = scenario.model.kv_per_real_token.value.bytes
    block_substance = shape.block_tokens // shape.ratio * kv
    for request in requests:
        for server in (request.prefill, request.decode):
            if server not in names:
                raise PlanError(
                    "plan",
                    f"request {request.id}",
                    f"is assigned to {server!r}, which the topology does not have",
                    "draw the workload with the names of this plan's roster",
                )
        if request.blocks * block_substance > request.wire_bytes:
            raise PlanError(
                "plan",
                f"request {request.id}",
                f"its {request.blocks} blocks of real KV are {request.blocks * block_substance} "
                f"bytes, but its emulated shape only {request.wire_bytes}",
                "raise shape.ratio, take a larger KV profile, or raise offered_load",
            )
