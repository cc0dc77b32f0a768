"""By how much PDD lowers CDC-PD's 90th percentile of the time to first token."""

from __future__ import annotations

from collections.abc import Mapping

from testbed.errors import AnalysisError
from testbed.reproduce.outcome import Outcomes
from testbed.reproduce.wanload import CDC, PDD, label

P90 = "ttft.p90_s"


def cut(value: float, base: float) -> float:
    """By which share ``value`` lies below ``base``."""
    return 1 - value / base


def cuts(outcomes: Outcomes, load: float) -> dict[int, float]:
    """By which share PDD lowers CDC-PD's P90, by seed."""
    return dict(outcomes.paired(label(PDD, load), label(CDC, load), P90, cut))


def mean_cut(values: Mapping[int, float]) -> float:
    """Mean over seeds.

    Raises:
        AnalysisError: no seed has a faithful run of both.
    """
    if not values:
        raise AnalysisError("compare P90", "PDD and CDC-PD", "no seed has a faithful run of both")
    return sum(values.values()) / len(values)
