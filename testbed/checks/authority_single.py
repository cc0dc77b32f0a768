"""Did one instance at a time answer each request? Two at once could contradict each other.

::

    P-MD       MD ────────────────────────▶
    P-RLD      RLD ───────────────────────▶
    P-RLD-MD   RLD ─────┬ handoff.end(k) ─▶   RLD has 0..k-1, MD has k and beyond;
                        MD ───────────────▶   k may be 0, or never come

With ``first_token: prefill`` position 0 comes from P, before all of these, and is none of
RLD's, although an RLD that has begun counts it among its positions. Where RLD died, or another
attempt was made, the instant of the change is not compared: what the client had by then
decides it.
"""

from __future__ import annotations

from collections import defaultdict

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.checks.history import Story
from testbed.checks.plane import Handoff, RelayEnd, Routed
from testbed.contract.attempt import attempt_id
from testbed.contract.event import Kind
from testbed.contract.serving import FirstToken

NO_PLANE = "no serving plane"
CANCELLED = "cancelled"
"""Cause with which an RLD stops whose last tokens were lost and are answered by MD."""


class AuthoritySingle:
    """The positions of an answer come from RLD, then from MD, and change hands once."""

    name = "authority-single"
    claim = "One instance at a time answers each request, and RLD hands over to MD at most once."

    def examine(self, case: Case) -> Finding:
        """Compare the sources of every stream with its route and its handoff."""
        if case.plan.agents[0].serving is None:
            return found(self.name, self.claim, NO_PLANE, [])
        plane = case.history.plane
        prefilled = case.plan.agents[0].serving.first_token is FirstToken.PREFILL
        routes = plane.route_of()
        ends: defaultdict[int, list[RelayEnd]] = defaultdict(list)
        for end in plane.relay_ends:
            ends[end.req].append(end)
        handoffs: defaultdict[int, list[Handoff]] = defaultdict(list)
        for step in plane.handoffs:
            handoffs[step.req].append(step)
        broken: list[str] = []
        alone = handed = 0
        for req, story in sorted(case.history.stories.items()):
            if not story.sources:
                continue
            if max(story.attempts) > 0:
                broken.extend(
                    f"request {req} {fault}" for fault in _attempts(req, story, routes, prefilled)
                )
                continue
            route = routes.get(req)
            if route is None:
                broken.append(
                    f"request {req} was answered by {story.sources[0][1]} without a route"
                )
                continue
            faults = _sources(story.sources, route, prefilled)
            if story.done and not faults and route.relay not in case.history.lost:
                faults = _handoff(story, route, handoffs[req])
                faults += _relay(story, route, ends[req], int(prefilled))
            broken.extend(f"request {req} {fault}" for fault in faults)
            decoders = {source for _, source in story.sources} - {route.prefill}
            handed += len(decoders) > 1
            alone += len(decoders) < 2
        evidence = f"{alone:,} streams from one instance, {handed:,} from RLD and then MD"
        return found(self.name, self.claim, evidence, broken)


def _attempts(req: int, story: Story, routes: dict[int, Routed], prefilled: bool) -> list[str]:
    """Attempts in their order, each by its own route; later ones show only what was missing."""
    if story.attempts != sorted(story.attempts):
        return [f"was answered by attempts {story.attempts}, not one after the other"]
    faults: list[str] = []
    for number in sorted(set(story.attempts)):
        route = routes.get(attempt_id(req, number))
        own = [
            source
            for source, attempt in zip(story.sources, story.attempts, strict=True)
            if attempt == number
        ]
        if route is None:
            faults.append(f"was answered by {own[0][1]} without a route")
        else:
            faults.extend(_sources(own, route, prefilled))
    return faults


def _sources(sources: list[tuple[int, str]], route: Routed, prefilled: bool) -> list[str]:
    """Who streamed, against who was to; P at most position 0."""
    names = [source for _, source in sources]
    allowed = [[name] for name in (route.relay, route.decode) if name]
    if prefilled and sources[0] == (0, route.prefill) and all(at == 1 for at, _ in sources[1:2]):
        del names[0]
        allowed.append([])
    if route.relay and route.decode:
        allowed.append([route.relay, route.decode])
    if names in allowed:
        return []
    return [f"came from {', then '.join(names[:5])} on its {route.pipeline} route"]


def _taken(story: Story, route: Routed) -> int | None:
    """First position that came from MD; None where RLD answered alone."""
    return next((at for at, source in story.sources if source == route.decode), None)


def _handoff(story: Story, route: Routed, steps: list[Handoff]) -> list[str]:
    faults = [
        f"has a {step.kind} at {step.node}, not at its MD {route.decode or '(none)'}"
        for step in steps
        if step.node != route.decode or not route.relay
    ]
    if faults or not route.relay:
        return faults
    ends = [step for step in steps if step.kind is Kind.HANDOFF_END]
    taken = _taken(story, route)
    if taken is None:
        return [f"was taken over at {end.position}, but RLD streamed all of it" for end in ends]
    if len(ends) != 1:
        return [f"has {len(ends)} ends of a handoff, but MD streamed from position {taken} on"]
    if ends[0].position != taken:
        faults.append(f"changes hands at position {taken}, its handoff ended at {ends[0].position}")
    starts = [step for step in steps if step.kind is Kind.HANDOFF_START]
    if len(starts) != 1 or starts[0].seq > ends[0].seq:
        faults.append(f"has {len(starts)} starts of a handoff, or one behind its end")
    return faults


def _relay(story: Story, route: Routed, ends: list[RelayEnd], base: int) -> list[str]:
    """``base`` is RLD's first own position: 1 where P emits position 0."""
    faults = [
        f"has a {Kind.RELAY_END} at {end.node}, not at its RLD {route.relay or '(none)'}"
        for end in ends
        if end.node != route.relay
    ]
    if faults or not route.relay:
        return faults
    if len(ends) > 1:
        return [f"was given up {len(ends)} times by RLD"]
    taken = _taken(story, route)
    due = max(0, (len(story.tokens) if taken is None else taken) - base)
    if not ends:
        return [f"has {due} tokens of RLD, which never gave it up"] if due else []
    told = ends[0].own_tokens(base)
    if told < due:
        return [f"has {due} tokens of RLD, which emitted {told}"]
    if told > due and ends[0].cause != CANCELLED:
        return [
            f"has {due} tokens of RLD, which emitted {told}: "
            f"both held positions from {base + due} on"
        ]
    return []
