"""The runs of a study, reduced to figures by variant and seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.checks.finding import Status
from testbed.checks.metrics_file import MetricsFile
from testbed.errors import AnalysisError
from testbed.reproduce.estimate import Estimate, estimate
from testbed.reproduce.extent import Extent

Values = Mapping[int, float]
"""Seed to value."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """One run that was judged.

    Its events are read with ``testbed.metrics.run.read_run(folder)`` and
    ``testbed.metrics.events.read_events(folder)``.
    """

    label: str
    seed: int
    folder: Path
    metrics: MetricsFile
    status: Status
    broken: tuple[str, ...] = ()
    """Checks that failed and were not excused."""
    words: str = ""

    def number(self, name: str) -> float | None:
        """A metric by dotted name; None where it is null or this run has none of it."""
        try:
            return self.metrics.number(name)
        except AnalysisError:
            return None


@dataclass(frozen=True, slots=True)
class Outcomes:
    """All runs of a study, and the values of all its measures in faithful ones.

    A run that is invalid is listed and decides the study's status; no figure of it is read.
    """

    extent: Extent
    runs: Mapping[str, tuple[RunOutcome, ...]]
    values: Mapping[tuple[str, str], Values]
    """(label, measure) to seed to value; seeds without a value are left out."""

    def has(self, label: str) -> bool:
        """Whether the variant was run in this extent."""
        return bool(self.runs.get(label))

    def faithful(self, label: str) -> tuple[RunOutcome, ...]:
        """The runs of a variant that figures may be read from."""
        return tuple(run for run in self.runs.get(label, ()) if run.status is not Status.INVALID)

    def of(self, label: str, measure: str) -> Values:
        """Values by seed.

        Raises:
            AnalysisError: the variant was not run, or has no such figure.
        """
        values = self.values.get((label, measure))
        if not values:
            cause = "no faithful run has it" if self.has(label) else "this variant was not run"
            raise AnalysisError("read a figure", f"{measure} of {label}", cause)
        return values

    def mean(self, label: str, measure: str) -> float:
        """Mean over seeds; raises as ``of``."""
        values = self.of(label, measure)
        return sum(values.values()) / len(values)

    def estimate(self, label: str, measure: str) -> Estimate | None:
        """Mean with interval; None where there is no figure."""
        return estimate(list(self.values.get((label, measure), {}).values()))

    def paired(
        self, label: str, base: str, measure: str, compute: Callable[[float, float], float]
    ) -> Values:
        """``compute(value, base value)`` on each common seed; empty where there is none."""
        own, other = self.values.get((label, measure), {}), self.values.get((base, measure), {})
        return {
            seed: compute(value, other[seed])
            for seed, value in own.items()
            if other.get(seed) not in (None, 0)
        }
