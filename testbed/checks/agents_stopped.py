"""Did every agent end well? A crashed agent makes a run invalid, not merely failed."""

from __future__ import annotations

from collections import defaultdict

from testbed.checks.case import Case
from testbed.checks.finding import Finding, Status, found
from testbed.contract.event import Kind
from testbed.contract.fault import NodeFault


class AgentsStopped:
    """Every agent reports exactly one stop, with status 0; one that the plan kills need not."""

    name = "agents-stopped"
    claim = "Every agent stopped once, with exit status 0."

    def examine(self, case: Case) -> Finding:
        """Look for the stop event of each agent of the plan."""
        stops: defaultdict[str, list[int]] = defaultdict(list)
        for moment in case.history.moments:
            if moment.kind is Kind.AGENT_STOP:
                stops[moment.node].append(moment.status)
        broken: list[str] = []
        killed = {
            node
            for fault in case.plan.faults
            if isinstance(fault, NodeFault) and fault.act in ("kill", "restart") and fault.spans
            for node in fault.nodes
        }
        for agent in case.plan.agents:
            statuses = stops[agent.node]
            if not statuses and agent.node in killed:
                continue
            if not statuses:
                broken.append(f"{agent.node} never stopped: it crashed, hung or was killed")
            elif statuses != [0]:
                broken.append(f"{agent.node} stopped with status {statuses}")
        gone = sorted(node for node in killed if not stops[node])
        stayed = len(case.plan.agents) - len(broken) - len(gone)
        evidence = f"{stayed} of {len(case.plan.agents)} agents"
        if gone:
            evidence += f"; killed by the plan: {', '.join(gone)}"
        return found(self.name, self.claim, evidence, broken, Status.INVALID)
