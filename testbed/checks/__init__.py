"""Checks: events in, findings out, one verdict. Pure over what a run folder holds.

The room reads a run's record once (``read_case``), asks each check what it saw
(``examine``) and keeps the worst answer (``judge``). A check never repairs, never
guesses and never touches the network; a check that crashes makes the run invalid,
because then nobody knows what it would have found.

::

    events/*.jsonl ─┐
    plan, workload ─┼─ Case ─ Check.examine ─ Finding ─┐
    fidelity, ref. ─┘                                  ├─ worst ─ Verdict ─ verdict.json
    metrics ───────────────────── expectation ─────────┘
"""

from __future__ import annotations

from testbed.checks.case import Case, read_case
from testbed.checks.check import Check
from testbed.checks.expectation import Bound, Expectation, ExpectationResult
from testbed.checks.finding import Finding, Status, worst
from testbed.checks.judge import CHECKS, examine, judge, spoil
from testbed.checks.run_folder import require_run_folder
from testbed.checks.verdict import Verdict, conclude, read_verdict

__all__ = [
    "CHECKS",
    "Bound",
    "Case",
    "Check",
    "Expectation",
    "ExpectationResult",
    "Finding",
    "Status",
    "Verdict",
    "conclude",
    "examine",
    "judge",
    "read_case",
    "read_verdict",
    "require_run_folder",
    "spoil",
    "worst",
]
