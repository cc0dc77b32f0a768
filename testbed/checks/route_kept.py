"""Did every request go the way the router sent it, with exactly the blocks it needed?

A request is routed once an attempt; each attempt keeps to its own route.

P prefills and sends. RLD gets all blocks of the prompt, MD those that its cache lacked, and
so does RLD where it has a cache; an instance answers only once that KV is verified, P (with
``first_token: prefill``) once it is computed. In ``incremental-kv`` RLD then sends MD
the rows of the tokens that it emitted.
"""

from __future__ import annotations

from collections import Counter

from testbed.checks.authority_single import NO_PLANE
from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.checks.plane import Routed
from testbed.checks.step import Step
from testbed.contract.attempt import attempt_id, request_of
from testbed.contract.event import Kind
from testbed.contract.handoff import HandoffMode
from testbed.contract.role import Role

STAGES: dict[str, tuple[bool, bool]] = {
    "P-MD": (False, True),
    "P-RLD-MD": (True, True),
    "P-RLD": (True, False),
}
"""Per pipeline: whether it has an RLD, and an MD."""


class RouteKept:
    """One route a request; prefill, caches and transfers keep to it."""

    name = "route-kept"
    claim = "Every request is routed once, and served where and with the blocks it was routed for."

    def examine(self, case: Case) -> Finding:
        """Compare every event of a request with its route."""
        if case.plan.agents[0].serving is None:
            return found(self.name, self.claim, NO_PLANE, [])
        plane = case.history.plane
        routes = plane.route_of()
        roles = {agent.node: agent.role for agent in case.plan.agents}
        broken: list[str] = []
        for one in plane.routed:
            broken.extend(f"request {one.req} {fault}" for fault in _sound(one, roles))
        times = Counter(one.req for one in plane.routed)
        broken.extend(
            f"request {request_of(job)} was routed {count} times"
            for job, count in sorted(times.items())
            if count > 1
        )
        routed = {request_of(job) for job in times}
        broken.extend(
            f"request {req} was routed 0 times"
            for req, story in sorted(case.history.stories.items())
            if story.done and req not in routed
        )
        broken += _elsewhere(case, routes)
        sent = 0
        # Those whose MD asked RLD for the rows of its tokens.
        asked = {one.req for one in plane.handoffs if one.mode == HandoffMode.INCREMENTAL_KV}
        senders: dict[tuple[str, int], str] = {}
        for step in case.history.of(Kind.TRANSFER_START, Kind.KV_BEGIN, Kind.KV_VERIFIED):
            sent += step.kind is Kind.TRANSFER_START
            if step.kind is Kind.KV_BEGIN:
                senders[step.node, step.req] = step.peer
            sender = senders.get((step.node, step.req), "")
            if step.kind is Kind.TRANSFER_START:
                sender = step.node
            fault = _transfer(case, step, sender, routes.get(step.req), asked)
            if fault:
                broken.append(f"request {step.req} {fault}")
        broken += _unverified(case)
        pipelines = Counter(one.pipeline for one in routes.values())
        ways = ", ".join(f"{n:,} {name}" for name, n in sorted(pipelines.items()))
        evidence = f"{len(routes):,} routed ({ways}), {sent:,} transfers"
        return found(self.name, self.claim, evidence, broken)


def _sound(one: Routed, roles: dict[str, Role]) -> list[str]:
    """Whether it is a route at all, by a router, over instances of the right roles."""
    faults: list[str] = []
    if roles.get(one.node) is not Role.ROUTER:
        faults.append(f"was routed by {one.node}, which is no router")
    stages = STAGES.get(one.pipeline)
    if stages is None or stages != (bool(one.relay), bool(one.decode)):
        faults.append(f"goes {one.pipeline} with RLD {one.relay!r} and MD {one.decode!r}")
    wanted = ((one.prefill, Role.PREFILL), (one.relay, Role.RELAY), (one.decode, Role.DECODE))
    for name, role in wanted:
        if (name or role is Role.PREFILL) and roles.get(name) is not role:
            faults.append(f"was routed to {name!r}, which is no {role.value} instance")
    return faults


def _elsewhere(case: Case, routes: dict[int, Routed]) -> list[str]:
    """Prefill and cache work at an instance that the request was not routed to."""
    broken: list[str] = []
    for step in case.history.plane.computed:
        route = routes.get(step.req)
        if route is None or step.node != route.prefill:
            broken.append(f"request {step.req} has a {step.kind} at {step.node}, off its route")
    block = case.plan.agents[0].shape.block_tokens
    for match in case.history.plane.caches:
        route = routes.get(match.req)
        if route is None or match.node not in (route.prefill, route.relay, route.decode):
            broken.append(f"request {match.req} has a {match.kind} at {match.node}, off its route")
        request = case.asked_by(match.req)
        if match.kind is Kind.CACHE_MATCHED and request is not None:
            blocks = request.input_tokens // block
            if match.of != blocks:
                broken.append(
                    f"request {match.req} has {blocks} blocks, {match.node} saw {match.of}"
                )
    return broken


def _transfer(
    case: Case, step: Step, sender: str, route: Routed | None, asked: set[int]
) -> str | None:
    """Whether it runs from the routed P to a routed receiver, with the blocks due there."""
    receiver = step.peer if step.kind is Kind.TRANSFER_START else step.node
    if route is None:
        return f"has a {step.kind} at {step.node}, but no route"
    if route.relay and (sender, receiver) == (route.relay, route.decode):
        return None if step.req in asked else "was sent by RLD without being asked"
    if sender not in ("", route.prefill):
        return f"was sent by {sender}, it was routed to {route.prefill}"
    if not receiver or receiver not in (route.relay, route.decode):
        return f"was sent to {receiver}, off its route"
    request = case.asked_by(step.req)
    if request is None:
        return None
    due = request.input_tokens // case.plan.agents[0].shape.block_tokens
    matched = case.history.matched.get((receiver, step.req))
    if matched is None and receiver == route.decode:
        return f"was sent to {receiver}, whose cache was never asked"
    due -= matched[0] if matched is not None else 0
    if step.blocks != due:
        return f"has a {step.kind} of {step.blocks} blocks for {receiver}, due were {due}"
    return None


def _unverified(case: Case) -> list[str]:
    """Answers that an instance began without the whole prompt's KV."""
    verified: dict[tuple[str, int], int] = {}
    for step in case.history.of(Kind.KV_VERIFIED):
        verified.setdefault((step.node, step.req), step.t)
    computed = {
        (step.node, step.req): step.t
        for step in case.history.plane.computed
        if step.kind is Kind.PREFILL_END
    }
    broken: list[str] = []
    for req, story in sorted(case.history.stories.items()):
        for (position, source), attempt in zip(story.sources, story.attempts, strict=True):
            job = attempt_id(req, attempt)
            blocks, of = case.history.matched.get((source, job), (0, -1))
            if blocks == of:
                continue
            t = verified.get((source, job), computed.get((source, job)))
            index = next((i for i, p in enumerate(story.positions) if p == position), 0)
            if t is None or t > story.token_ns[index]:
                broken.append(f"request {req} was answered by {source} before its KV was verified")
    return broken
