"""The length threshold of PrfaaS and its bandwidth feedback.

A context-length-centric scheduler that balances clusters and keeps the Ethernet from
overload (the paper's section on related work). The step, its marks and its interval are
this testbed's choice, given by ``LengthThreshold``. Deterministic; time is an argument.
"""

from __future__ import annotations

from testbed.contract.router import LengthThreshold
from testbed_agents.router.reach import Reach, prefills_within
from testbed_agents.router.view import ClusterView, RequestFacts


def adjusted(rule: LengthThreshold, threshold_tokens: int, used: float) -> int:
    """The next threshold when ``used`` of the line is busy: congestion sends fewer away."""
    if used >= rule.high:
        return min(rule.highest_tokens, int(threshold_tokens * (1 + rule.gain)) + 1)
    if used <= rule.low:
        return max(rule.lowest_tokens, int(threshold_tokens / (1 + rule.gain)))
    return threshold_tokens


class LengthSchedule:
    """Holds the threshold of one router."""

    def __init__(self, rule: LengthThreshold) -> None:
        self._rule = rule
        self._adjusted_ns: int | None = None
        self.threshold_tokens = rule.threshold_tokens

    def reach(self, request: RequestFacts, view: ClusterView) -> Reach:
        """Far where more than the threshold is uncached in every near cache."""
        self._observe(view)
        near = prefills_within(view, Reach.NEAR)
        hit = max([one.hit_blocks for one in near], default=0)
        uncached = request.uncached_tokens(hit)
        return Reach.FAR if uncached > self.threshold_tokens else Reach.NEAR

    def _observe(self, view: ClusterView) -> None:
        """Follows the busiest leg that leaves a far P, at most once an interval."""
        last = self._adjusted_ns
        if last is not None and view.now_ns - last < self._rule.interval_ns:
            return
        self._adjusted_ns = view.now_ns
        if last is None:
            return
        self.threshold_tokens = adjusted(self._rule, self.threshold_tokens, egress(view))


def egress(view: ClusterView) -> float:
    """Used share of the busiest leg between a far P and an MD; 0 without any."""
    sites = {one.site for one in view.decodes}
    far = {one.name for one in view.prefills if one.site not in sites}
    legs = {pool.leg for (prefill, _), pool in view.pools.items() if prefill in far}
    return max([view.legs[leg].used for leg in legs if leg in view.legs], default=0.0)
