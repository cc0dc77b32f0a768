"""What a scenario expects of its run; pass then means that the expectation held.

A scenario that breaks something on purpose expects ``fail`` and names the checks that
must notice; any run may bound its metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from testbed.checks.finding import Finding, Status, worst
from testbed.checks.metrics_file import MetricsFile
from testbed.contract.record import Record
from testbed.errors import AnalysisError

Relation = Literal["<", "<=", ">", ">=", "=="]


class Bound(Record):
    """A bound on one metric, in the metric's SI unit."""

    metric: str
    relation: Relation
    limit: float

    def holds(self, value: float) -> bool:
        """Whether ``value`` keeps the bound."""
        return {
            "<": value < self.limit,
            "<=": value <= self.limit,
            ">": value > self.limit,
            ">=": value >= self.limit,
            "==": value == self.limit,
        }[self.relation]


class Expectation(Record):
    """``expect:`` of a scenario.

    Attributes:
        verdict: the status that the checks must reach.
        violations: names of the checks that must not pass; all others must.
        bounds: bounds on metrics, checked in addition.
    """

    verdict: Status = Status.PASS
    violations: tuple[str, ...] = ()
    bounds: tuple[Bound, ...] = ()


class ExpectationResult(Record):
    """Whether the expectation held, and what spoke against it."""

    expected: Expectation
    held: bool
    against: tuple[str, ...] = ()


def compare(
    expected: Expectation, findings: Sequence[Finding], metrics: MetricsFile | None
) -> ExpectationResult:
    """Hold the findings and metrics against the expectation."""
    against: list[str] = []
    status = worst(finding.status for finding in findings if finding.decides)
    if status is not expected.verdict:
        against.append(f"the checks say {status}, expected {expected.verdict}")
    by_name = {finding.check: finding for finding in findings}
    for name in expected.violations:
        if name not in by_name:
            against.append(f"there is no check {name!r}; known: {', '.join(sorted(by_name))}")
        elif by_name[name].status is Status.PASS:
            against.append(f"{name} was expected to find violations but passed")
    if expected.violations:
        against.extend(
            f"{finding.check} found violations that were not expected"
            for finding in findings
            if finding.decides
            and finding.status is not Status.PASS
            and finding.check not in expected.violations
        )
    against.extend(_broken_bounds(expected, metrics))
    return ExpectationResult(expected=expected, held=not against, against=tuple(against))


def _broken_bounds(expected: Expectation, metrics: MetricsFile | None) -> list[str]:
    against: list[str] = []
    for bound in expected.bounds:
        wanted = f"{bound.metric} {bound.relation} {bound.limit:g}"
        if metrics is None:
            against.append(f"{wanted}: there is no metrics.json")
            continue
        try:
            value = metrics.number(bound.metric)
        except AnalysisError as error:
            against.append(f"{wanted}: {error.cause}")
            continue
        if value is None:
            against.append(f"{wanted}: the metric is null in this run")
        elif not bound.holds(value):
            against.append(f"{wanted}: it is {value:g}")
    return against
