"""The serving plane of a plan: what its router and instances are told."""

from __future__ import annotations

from testbed.contract.agent import Request
from testbed.contract.role import Role
from testbed.contract.serving import Serving
from testbed.plan.roster import Member, capacity
from testbed.scenario.value import Scenario


def serving_of(
    scenario: Scenario, members: tuple[Member, ...], requests: tuple[Request, ...], seed: int
) -> Serving | None:
    """None where the scenario has no serving plane."""
    choice = scenario.file.serving
    if choice is None:
        return None
    legs = capacity(scenario)
    sites = {role: {m.site for m in members if m.role is role} for role in Role}
    paths = tuple(
        (f"{one}-{other}", int(legs.legs * legs.leg_payload_bps))
        for one in sorted(sites[Role.PREFILL])
        for other in sorted(sites[Role.DECODE])
    )
    return choice.resolve(
        seed,
        _round_trip_ns(scenario),
        _documents(scenario, requests),
        tuple((member.name, member.site) for member in members),
        tuple(
            (member.name, scenario.hardware_of(member.role).max_batch)
            for member in members
            if member.role in (Role.RELAY, Role.DECODE)
        ),
        paths,
    )


def _round_trip_ns(scenario: Scenario) -> int:
    """Between P's and MD's site, without queues and access links."""
    roles = scenario.topology.roles
    ends = {roles[Role.PREFILL].site, roles[Role.DECODE].site}
    for trunk in scenario.topology.trunks:
        if set(trunk.between) == ends:
            return 2 * scenario.link(trunk.link).delay_ns
    return 2 * scenario.link(roles[Role.PREFILL].link).delay_ns


def _documents(scenario: Scenario, requests: tuple[Request, ...]) -> tuple[tuple[int, int], ...]:
    """Shared documents, as long as the longest prompt, which caches hold from the start."""
    prompts = scenario.workload.prompts
    if prompts.kind != "documents":
        return ()
    longest = max((request.input_tokens for request in requests), default=0)
    return tuple((document, longest) for document in range(prompts.count))
