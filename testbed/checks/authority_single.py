"""Did one instance at a time answer each request? Two at once could contradict each other.

::

    P-MD       MD ────────────────────────▶
    P-RLD      RLD ───────────────────────▶
    P-RLD-MD   RLD ─────┬ handoff.end(k) ─▶   RLD has 0..k-1, MD has k and beyond;
                        MD ───────────────▶   k may be 0, or never come
"""

from __future__ import annotations

from collections import defaultdict

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.checks.history import Story
from testbed.checks.plane import Handoff, RelayEnd, Routed
from testbed.contract.event import Kind

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
            route = routes.get(req)
            if route is None:
                broken.append(
                    f"request {req} was answered by {story.sources[0][1]} without a route"
                )
                continue
            faults = _sources(story, route)
            if story.done and not faults:
                faults = [*_handoff(story, route, handoffs[req]), *_relay(story, route, ends[req])]
            broken.extend(f"request {req} {fault}" for fault in faults)
            handed += len(story.sources) > 1
            alone += len(story.sources) == 1
        evidence = f"{alone:,} streams from one instance, {handed:,} from RLD and then MD"
        return found(self.name, self.claim, evidence, broken)


def _sources(story: Story, route: Routed) -> list[str]:
    """Who streamed, against who was to."""
    names = [source for _, source in story.sources]
    allowed = [[name] for name in (route.relay, route.decode) if name]
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


def _relay(story: Story, route: Routed, ends: list[RelayEnd]) -> list[str]:
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
    due = len(story.tokens) if taken is None else taken
    if not ends:
        return [f"has {due} tokens of RLD, which never gave it up"] if due else []
    told = ends[0].tokens
    if told < due:
        return [f"has {due} tokens of RLD, which emitted {told}"]
    if told > due and ends[0].cause != CANCELLED:
        return [f"has {due} tokens of RLD, which emitted {told}: both held positions from {due} on"]
    return []
