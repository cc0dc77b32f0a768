"""Was the lab what the plan promised? If not, the results mean nothing."""

from __future__ import annotations

from testbed.checks.case import Case
from testbed.checks.finding import Finding, Status, found
from testbed.errors import AnalysisError


class LinksFaithful:
    """Every row of ``fidelity.json`` is ok, and there is at least one."""

    name = "links-faithful"
    claim = "Every link was applied, read back and measured as planned."

    def examine(self, case: Case) -> Finding:
        """Count the rows that are not ok."""
        if not case.fidelity:
            raise AnalysisError(
                "check fidelity",
                "fidelity.json",
                "it is missing or empty: nobody compared the lab with the plan",
                "calibrate the lab, or do not trust this run",
            )
        broken = [f"{row.section}: {row}" for row in case.fidelity if not row.ok]
        good = len(case.fidelity) - len(broken)
        evidence = f"{good} of {len(case.fidelity)} compared quantities are as planned"
        for fall in case.history.falls:
            if not fall.wanted:
                evidence += (
                    f"; {fall.node} ended {fall.t / 1e9:.3f} s after the barrier although no fault "
                    "wanted it, and was as planned again when it was back"
                )
        return found(self.name, self.claim, evidence, broken, Status.INVALID)
