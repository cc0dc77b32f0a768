"""Did every agent end well? A crashed agent makes a run invalid, not merely failed.

One that a fault of the plan kills does what is wanted of it.
"""

from __future__ import annotations

from collections import defaultdict

from testbed.checks.case import Case
from testbed.checks.finding import Finding, Status, found
from testbed.checks.planned_ends import killed_at
from testbed.contract.event import Kind


class AgentsStopped:
    """Every agent reports exactly one stop, with status 0; one that the plan ends need not."""

    name = "agents-stopped"
    claim = "Every agent stopped once, with exit status 0."

    def examine(self, case: Case) -> Finding:
        """Look for the stop event of each agent of the plan."""
        stops: defaultdict[str, list[int]] = defaultdict(list)
        for moment in case.history.moments:
            if moment.kind is Kind.AGENT_STOP:
                stops[moment.node].append(moment.status)
        broken: list[str] = []
        killed = killed_at(case.plan, case.history.reached_ns)
        for agent in case.plan.agents:
            statuses = stops[agent.node]
            if agent.node in killed and not statuses:
                continue
            if not statuses:
                broken.append(f"{agent.node} never stopped: it crashed, hung or was killed")
            elif statuses != [0]:
                broken.append(f"{agent.node} stopped with status {statuses}")
        gone = sorted(
            one.node for one in case.plan.agents if one.node in killed and not stops[one.node]
        )
        stayed = len(case.plan.agents) - len(broken) - len(gone)
        evidence = f"{stayed} of {len(case.plan.agents)} agents"
        if gone:
            evidence += f"; killed by the plan: {', '.join(gone)}"
        return found(self.name, self.claim, evidence, broken, Status.INVALID)
