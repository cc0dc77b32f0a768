"""Did every agent end well? A crashed agent makes a run invalid, not merely failed."""

from __future__ import annotations

from collections import defaultdict

from testbed.checks.case import Case
from testbed.checks.finding import Finding, Status, found
from testbed.contract.event import Kind


class AgentsStopped:
    """Every agent reports exactly one stop, with status 0."""

    name = "agents-stopped"
    claim = "Every agent stopped once, with exit status 0."

    def examine(self, case: Case) -> Finding:
        """Look for the stop event of each agent of the plan."""
        stops: defaultdict[str, list[int]] = defaultdict(list)
        for moment in case.history.moments:
            if moment.kind is Kind.AGENT_STOP:
                stops[moment.node].append(moment.status)
        broken: list[str] = []
        for agent in case.plan.agents:
            statuses = stops[agent.node]
            if not statuses:
                broken.append(f"{agent.node} never stopped: it crashed, hung or was killed")
            elif statuses != [0]:
                broken.append(f"{agent.node} stopped with status {statuses}")
        evidence = f"{len(case.plan.agents) - len(broken)} of {len(case.plan.agents)} agents"
        return found(self.name, self.claim, evidence, broken, Status.INVALID)
