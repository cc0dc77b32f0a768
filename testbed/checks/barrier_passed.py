"""Did the run start at one instant? Without the barrier a timeline is not repeatable."""

from __future__ import annotations

from testbed.checks.case import Case
from testbed.checks.finding import Finding, Status, found
from testbed.contract.event import Kind

SKEW_NS = {"virtual": 1_000_000, "real": 100_000_000}
"""Agents wake at one absolute time but run one after another on one CPU; within this
span their traffic may start before the last of them has noted the barrier: 1 ms in virtual time,
100 ms of scheduling on a live kernel."""


class BarrierPassed:
    """Every agent passed the barrier before the first connection was used."""

    name = "barrier-passed"
    claim = "All agents passed the barrier before the first request or transfer."

    def examine(self, case: Case) -> Finding:
        """Compare each agent's barrier with the first traffic of the run."""
        passed = {
            moment.node: moment.t for moment in case.history.moments if moment.kind is Kind.BARRIER
        }
        starts = [step.t for step in case.history.steps[:1]]
        starts += [story.sent_ns[0] for story in case.history.stories.values() if story.sent_ns]
        if case.history.plane.first_ns is not None:
            starts.append(case.history.plane.first_ns)
        first = min(starts, default=None)
        broken: list[str] = []
        for agent in case.plan.agents:
            t = passed.get(agent.node)
            if t is None:
                broken.append(f"{agent.node} never passed the barrier")
            elif t < 0:
                broken.append(f"{agent.node} passed the barrier {-t} ns too early")
            elif first is not None and t > first + SKEW_NS[case.plan.clock]:
                broken.append(f"{agent.node} passed at {t} ns, traffic began at {first} ns")
        if first is not None and first < 0:
            broken.append(f"traffic began {-first} ns before the barrier")
        last = max(passed.values(), default=0)
        evidence = (
            f"{len(passed)} nodes passed, the last {last / 1e3:.1f} us after the barrier; "
            + ("no traffic" if first is None else f"first traffic at {first / 1e3:.1f} us")
        )
        return found(self.name, self.claim, evidence, broken, Status.INVALID)
