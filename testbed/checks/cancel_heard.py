"""Does anybody go on for a request that its client has given up?"""

from __future__ import annotations

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.contract.attempt import request_of
from testbed.contract.event import Kind

BOUND_NS = 1_000_000_000
"""How long the word may take to everybody: round trips of the longest line, and a step."""
_BEGINS = (Kind.PREFILL_START, Kind.TRANSFER_START, Kind.DECODE_START)


class CancelHeard:
    """Nothing is begun for a request more than ``BOUND_NS`` after it was reported failed."""

    name = "cancel-heard"
    claim = "Nobody begins anything for a request that its client gave up."

    def examine(self, case: Case) -> Finding:
        """Compare what was begun with when each request failed."""
        if case.plan.agents[0].serving is None:
            return found(self.name, self.claim, "requests are not cancelled in a pool study", [])
        left = {
            req: max(t for t, _ in story.failed)
            for req, story in case.history.stories.items()
            if story.failed and not story.done
        }
        plane = case.history.plane
        begun = [
            *((one.t, one.node, one.kind, one.req) for one in plane.computed),
            *((one.t, one.node, one.kind, one.req) for one in plane.device),
            *((one.t, one.node, one.kind, one.req) for one in case.history.of(*_BEGINS)),
        ]
        broken = [
            f"{node}: {kind.value} of request {req} {(t - left[request_of(req)]) / 1e9:.3f} s "
            "after its client gave it up"
            for t, node, kind, req in sorted(begun, key=lambda one: one[:2])
            if kind in _BEGINS and request_of(req) in left and t > left[request_of(req)] + BOUND_NS
        ]
        return found(self.name, self.claim, f"{len(left):,} were given up", broken)
