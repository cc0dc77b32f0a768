"""Does anybody wait until the deadline for an instance that is gone?

Only runs whose plan kills or cuts off a node can tell. A request that such a fault holds up is
answered by others, or fails by name, long before the deadline.
"""

from __future__ import annotations

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.checks.planned_ends import due_spans
from testbed.contract.attempt import request_of
from testbed.contract.event import Kind
from testbed.contract.fault import NodeFault

BOUND_NS = 15_000_000_000
"""Within this everybody knows: 10 s of silence, and what follows from it."""
_DEADLINE = "deadline"


class GoneNoticed:
    """No request ends by the deadline that was routed to who was gone, or that stood still."""

    name = "gone-noticed"
    claim = "Nobody waits until the deadline for an instance that is gone."

    def examine(self, case: Case) -> Finding:
        """Look at the requests that failed by the deadline, and at what they waited for."""
        deadline = case.window.deadline_ns
        gone = _gone(case, deadline - BOUND_NS)
        if not gone:
            return found(self.name, self.claim, "nobody was gone for long", [])
        routes = {request_of(route.req): route for route in case.history.plane.routed}
        last = _last_signs(case)
        broken: list[str] = []
        for req, story in sorted(case.history.stories.items()):
            if story.done or not any(reason == _DEADLINE for _, reason in story.failed):
                continue
            route = routes.get(req)
            names = () if route is None else (route.prefill, route.relay, route.decode)
            awaited = [name for name in names if name in gone]
            if awaited:
                broken.append(f"request {req} waited until the deadline for {awaited[0]}")
            elif req in last and last[req] + BOUND_NS < deadline:
                broken.append(
                    f"request {req} stood still from {last[req] / 1e9:.3f} s to the deadline"
                )
        return found(self.name, self.claim, f"gone were {', '.join(sorted(gone))}", broken)


def _gone(case: Case, by_ns: int) -> frozenset[str]:
    """Nodes that a fault without an end took away by then; those that are killed stay away."""
    return frozenset(
        node
        for fault in case.plan.faults
        if isinstance(fault, NodeFault)
        for span in due_spans(fault, case.history.reached_ns)
        if span.begin_ns < by_ns and (span.end_ns is None or fault.act in ("kill", "restart"))
        for node in fault.nodes
    )


def _last_signs(case: Case) -> dict[int, int]:
    """When something last happened for each request whose prefill has ended: others wait in line.

    A transfer that waits for a connection, or runs, stands in a line, too.
    """
    last: dict[int, int] = {}
    for one in case.history.plane.computed:
        if one.kind is Kind.PREFILL_END:
            last[request_of(one.req)] = one.t
    for step in case.history.steps:
        req = request_of(step.req)
        if req in last:
            last[req] = max(last[req], step.t)
    for req, story in case.history.stories.items():
        if req in last and story.token_ns:
            last[req] = max(last[req], max(story.token_ns))
    return last
