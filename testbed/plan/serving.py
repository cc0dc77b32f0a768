"""The serving plane of a plan: what its router and instances are told."""

from __future__ import annotations

from testbed.contract.agent import Request
from testbed.contract.role import Role
from testbed.contract.serving import Serving
from testbed.plan.roster import Member, path_payload_bps
from testbed.scenario.value import Scenario


def serving_of(
    scenario: Scenario, members: tuple[Member, ...], requests: tuple[Request, ...], seed: int
) -> Serving | None:
    """None where the scenario has no serving plane."""
    choice = scenario.file.serving
    if choice is None:
        return None
    sites = {role: {m.site for m in members if m.role is role} for role in Role}
    pairs = [(p, d) for p in sorted(sites[Role.PREFILL]) for d in sorted(sites[Role.DECODE])]
    paths = tuple((f"{p}-{d}", int(path_payload_bps(scenario, p, d))) for p, d in pairs)
    return choice.resolve(
        seed,
        max(_round_trip_ns(scenario, p, d) for p, d in pairs),
        _documents(scenario, requests),
        tuple((member.name, member.site) for member in members),
        tuple(
            (member.name, scenario.hardware_of(member.role).max_batch)
            for member in members
            if member.role in (Role.RELAY, Role.DECODE)
        ),
        paths,
    )


def _round_trip_ns(scenario: Scenario, one: str, other: str) -> int:
    """Between P's and MD's site, without queues; within a site over the access links."""
    layout = scenario.layout
    legs = layout.joining(one, other)
    link = legs.link if legs is not None else layout.where(Role.PREFILL)[0].link
    return 2 * scenario.link(link).delay_ns


def _documents(scenario: Scenario, requests: tuple[Request, ...]) -> tuple[tuple[int, int], ...]:
    """Shared documents, as long as the longest prompt, which caches hold from the start."""
    prompts = scenario.workload.prompts
    if prompts.kind != "documents":
        return ()
    longest = max((request.input_tokens for request in requests), default=0)
    return tuple((document, longest) for document in range(prompts.count))
