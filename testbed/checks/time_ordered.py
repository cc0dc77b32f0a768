"""Does time run forward in every record? A clock cannot go back, an edited file can."""

from __future__ import annotations

from testbed.checks.case import Case
from testbed.checks.finding import Finding, Status, found
from testbed.checks.record_complete import LAB
from testbed.contract.event import Kind
from testbed.contract.role import Role

STOP_NS = 10_000_000_000
"""The lab gives agents this long to stop once it has taken its last sample; one that
takes longer ends the run with an error."""


class TimeOrdered:
    """Events of one node, taken by number, have times that never decrease; ends follow causes.

    Equal times are sound: computing takes no time on the virtual clock. All clocks of a run
    are one: the lab stops sampling once every client has stopped, and only then
    tells the other agents to stop.
    """

    name = "time-ordered"
    claim = "Time never runs backward in a record, and clients, lab and servers stop in this order."

    def examine(self, case: Case) -> Finding:
        """List the events that are earlier than their predecessor or their cause."""
        broken = [
            f"{node}: event {number} is earlier than the one before it"
            for node, sequence in sorted(case.history.sequences.items())
            for number in sequence.backward
        ]
        total = sum(sequence.count for sequence in case.history.sequences.values())
        evidence = f"{total - len(broken):,} of {total:,} events in order of time"
        broken.extend(_stops(case))
        return found(self.name, self.claim, evidence, broken, Status.INVALID)


def _stops(case: Case) -> list[str]:
    """Stops that do not fit that of the lab; a missing one is the matter of other checks."""
    stops = {m.node: m.t for m in case.history.moments if m.kind is Kind.AGENT_STOP}
    lab = stops.get(LAB)
    if lab is None:
        return []
    broken: list[str] = []
    for agent in case.plan.agents:
        t = stops.get(agent.node, lab)
        if agent.role is Role.CLIENT and t > lab:
            broken.append(f"{agent.node} stopped {t - lab} ns after the lab, which waits for it")
        elif agent.role is not Role.CLIENT and not lab <= t <= lab + STOP_NS:
            broken.append(f"{agent.node} stopped {t - lab} ns after the lab, not within 10 s")
    return broken
