"""Does the serving plane refuse what it has no room for, instead of letting it wait?

Counted is only what was under way for certain: a request that was cancelled on its way says not
everywhere when it left. So the count is never too high.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from testbed.checks.authority_single import NO_PLANE
from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.contract.attempt import request_of
from testbed.contract.event import Kind
from testbed.contract.role import Role

Stay = tuple[int, int]
"""When one began to count, and when it ended, in nanoseconds."""


class QueuesBounded:
    """Requests at the router, at each P and at each MD never exceed ``serving.admission``."""

    name = "queues-bounded"
    claim = "No more requests were under way at the router, a P or an MD than may be."

    def examine(self, case: Case) -> Finding:
        """Count who was where at the same time."""
        serving = case.plan.agents[0].serving
        if serving is None:
            return found(self.name, self.claim, NO_PLANE, [])
        bounds = {
            Role.ROUTER: serving.admission.router_requests,
            Role.PREFILL: serving.admission.prefill_requests,
            Role.DECODE: serving.admission.decode_requests,
        }
        roles = {agent.node: agent.role for agent in case.plan.agents}
        broken: list[str] = []
        highest = 0
        for node, stays in sorted(_stays(case).items()):
            most, at_ns = _most(stays)
            highest = max(highest, most)
            bound = bounds.get(roles[node], most)
            if most > bound:
                broken.append(
                    f"{node} had {most} requests under way at {at_ns / 1e9:.3f} s, may have {bound}"
                )
        return found(self.name, self.claim, f"{highest:,} at one place at most", broken)


def _stays(case: Case) -> dict[str, list[Stay]]:
    """Per node: from when to when each request was under way there for certain."""
    stays: defaultdict[str, list[Stay]] = defaultdict(list)
    ends = {
        req: max(t for t, _ in (*story.done, *story.failed))
        for req, story in case.history.stories.items()
        if story.done or story.failed
    }
    roles = {agent.node: agent.role for agent in case.plan.agents}
    first: set[int] = set()
    for route in case.history.plane.routed:
        request = request_of(route.req)
        if request not in first and request in ends:
            first.add(request)
            stays[route.node].append((route.t, ends[request]))
    for step in case.history.plane.caches:
        if step.kind is not Kind.CACHE_MATCHED:
            continue
        role = roles.get(step.node)
        if role is Role.PREFILL:
            end = case.history.prefill_ns.get(step.req, (-1, -1))[1]
        elif role is Role.DECODE:
            end = case.history.decode_ns.get(step.req, (-1, -1))[1]
        else:
            continue
        if end > step.t:
            stays[step.node].append((step.t, end))
    return stays


def _most(stays: Iterable[Stay]) -> tuple[int, int]:
    """The highest count, and when it was reached. Who leaves makes room for who comes."""
    changes = sorted(
        change for begin, end in stays for change in ((begin, 1), (end, -1)) if end > begin
    )
    count, most, at_ns = 0, 0, 0
    for t, change in changes:
        count += change
        if count > most:
            most, at_ns = count, t
    return most, at_ns
