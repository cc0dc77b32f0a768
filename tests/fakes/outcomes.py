"""Outcomes of a study by hand: values of measures, without any run folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from testbed.checks.finding import Status
from testbed.checks.metrics_file import MetricsFile
from testbed.reproduce.extent import Extent
from testbed.reproduce.outcome import Outcomes, RunOutcome


def outcome(label: str, seed: int = 1, status: Status = Status.PASS) -> RunOutcome:
    """A run that says nothing but how it ended."""
    path = Path("nowhere") / f"{label}-s{seed}"
    return RunOutcome(label, seed, path, MetricsFile(path, {}), status, (), status.value)


def outcomes(
    values: Mapping[tuple[str, str], Mapping[int, float]],
    extent: Extent = Extent.NORMAL,
    status: Status = Status.PASS,
) -> Outcomes:
    """``values``: (label, measure) to seed to value; every label was run with its seeds."""
    seeds: dict[str, set[int]] = {}
    for (label, _), by_seed in values.items():
        seeds.setdefault(label, set()).update(by_seed)
    runs = {
        label: tuple(outcome(label, seed, status) for seed in sorted(own))
        for label, own in seeds.items()
    }
    return Outcomes(extent, runs, values)
