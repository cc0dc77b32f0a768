"""Is the record itself whole? Lost events would make every other check meaningless.

A record that lost its beginning or its middle has a gap in its numbers. One that lost its
end has not, so every record ends with a stop: that of an agent is the matter of
``agents-stopped``, that of the lab, which samples the links, is looked at here.
"""

from __future__ import annotations

from collections import defaultdict

from testbed.checks.case import Case
from testbed.checks.finding import Finding, Status, found
from testbed.checks.moment import Moment
from testbed.contract.event import Kind
from testbed.contract.lateness import HOST

LAB = "lab"
"""The node under which the lab writes its samples, in ``events/lab.jsonl``."""


class RecordComplete:
    """Agents and lab wrote events, numbered 0, 1, 2 … without a gap, from ready to stop."""

    name = "record-complete"
    claim = "The events of every agent and of the lab are all there, from first to last."

    def examine(self, case: Case) -> Finding:
        """Compare counts and highest numbers of all nodes; look for both ends."""
        broken: list[str] = []
        wanted = [*(agent.node for agent in case.plan.agents), LAB]
        others = (HOST,) if case.plan.clock == "real" else ()
        moments: defaultdict[str, list[Moment]] = defaultdict(list)
        for moment in case.history.moments:
            moments[moment.node].append(moment)
        for node in wanted:
            if node not in case.history.sequences:
                broken.append(f"{node} wrote no events")
            elif not any(m.kind is Kind.AGENT_READY and m.seq == 0 for m in moments[node]):
                broken.append(f"{node}: the record does not begin with its readiness")
        total = 0
        for node, sequence in sorted(case.history.sequences.items()):
            total += sequence.count
            missing = sequence.highest + 1 - (sequence.count - sequence.repeated)
            if missing or sequence.repeated:
                broken.append(f"{node}: {missing} missing, {sequence.repeated} repeated")
            if sequence.misplaced:
                broken.append(f"{node}: {sequence.misplaced} not in the order of their numbers")
            if node not in (*wanted, *others):
                broken.append(f"{node} wrote events but is not part of the plan")
        if LAB in case.history.sequences:
            broken.extend(_unended(moments[LAB], case.history.sequences[LAB].highest))
        evidence = f"{total:,} events of {len(case.history.sequences)} nodes"
        return found(self.name, self.claim, evidence, broken, Status.INVALID)


def _unended(moments: list[Moment], highest: int) -> list[str]:
    stops = [moment for moment in moments if moment.kind is Kind.AGENT_STOP]
    if [(stop.seq, stop.status) for stop in stops] == [(highest, 0)]:
        return []
    if not stops:
        return [f"{LAB}: the record has no end: it was cut, or the lab was"]
    return [f"{LAB}: the record does not end with one stop of status 0"]
