"""Is the record itself whole? Lost events would make every other check meaningless."""

from __future__ import annotations

from testbed.checks.case import Case
from testbed.checks.finding import Finding, Status, found


class RecordComplete:
    """Every agent wrote events, numbered 0, 1, 2 … without a gap or a repeat."""

    name = "record-complete"
    claim = "Every agent's events are all there, numbered without gap or repeat."

    def examine(self, case: Case) -> Finding:
        """Compare counts and highest numbers of all nodes."""
        broken: list[str] = []
        for agent in case.plan.agents:
            if agent.node not in case.history.sequences:
                broken.append(f"{agent.node} wrote no events")
        total = 0
        for node, sequence in sorted(case.history.sequences.items()):
            total += sequence.count
            missing = sequence.highest + 1 - (sequence.count - sequence.repeated)
            if missing or sequence.repeated:
                broken.append(f"{node}: {missing} missing, {sequence.repeated} repeated")
        evidence = f"{total:,} events of {len(case.history.sequences)} nodes"
        return found(self.name, self.claim, evidence, broken, Status.INVALID)
