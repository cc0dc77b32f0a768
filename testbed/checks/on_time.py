"""Was the machine in time? A live clock goes on while programs are late; a virtual one waits."""

from __future__ import annotations

from collections import Counter

from testbed.checks.case import Case
from testbed.checks.finding import Finding, Status, found
from testbed.contract.lateness import quantile_ns

LATE_STEPS = 0.05
"""Share of steps that may take more than 5 % longer than their profile."""
LATE_WAITS = 0.25
"""Share of the shortest time that matters by which all but 1 % of the waits must be in time."""
STOLEN = 0.05
"""Share of the processors' time that others may take."""
_PERCENTILE = 0.99


class OnTime:
    """Steps keep their profile, waits end in time, and the machine is not taken away.

    Only the real clock has such a question; agents, lab and orchestrator count while they run.
    """

    name = "on-time"
    claim = "The machine kept up with its own clock."

    def examine(self, case: Case) -> Finding:
        """Compare what was counted with the bounds."""
        plan, history = case.plan, case.history
        if plan.clock == "virtual":
            words = "not applicable: the virtual clock waits for every program"
            return found(self.name, self.claim, words, ())
        broken: list[str] = []
        told = {tally.node for tally in history.tallies}
        broken += [
            f"{agent.node} never said how late it was"
            for agent in plan.agents
            if agent.node not in told
        ]
        if plan.demand is None:
            return found(self.name, self.claim, "", ["the plan has no demand"], Status.INVALID)
        waits: Counter[int] = Counter()
        for tally in history.tallies:
            waits.update(tally.waits)
        steps = sum(tally.steps for tally in history.tallies)
        late = sum(tally.late_steps for tally in history.tallies)
        share = late / steps if steps else 0.0
        if share > LATE_STEPS:
            broken.append(
                f"{late} of {steps} steps took 5 % longer than their profile ({share:.1%}, bound "
                f"{LATE_STEPS:.0%}): the machine computes too slowly for this scale"
            )
        worst, limit = quantile_ns(waits, _PERCENTILE), LATE_WAITS * plan.demand.shortest_ns
        if worst > limit:
            broken.append(
                f"1 % of {waits.total()} waits ended over {worst / 1e6:.3f} ms late, bound "
                f"{limit / 1e6:.3f} ms: a quarter of the shortest time that matters"
            )
        whole = sum(sample.interval_ns for sample in history.machine)
        part = sum(sample.steal_ns for sample in history.machine) / max(whole, 1)
        busy = sum(sample.busy_ns for sample in history.machine) / max(whole, 1)
        if not whole:
            broken.append("nobody looked at the processors while the run was on")
        if part > STOLEN:
            broken.append(f"{part:.1%} of the processors' time was stolen, bound {STOLEN:.0%}")
        evidence = (
            f"{late} of {steps} steps late; P99 of {waits.total()} waits {worst / 1e6:.3f} ms of "
            f"{limit / 1e6:.3f} ms; processors {part:.2%} stolen, {busy:.0%} busy (with everything "
            "that runs here)"
        )
        return found(self.name, self.claim, evidence, broken, Status.INVALID)
