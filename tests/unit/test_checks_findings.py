"""The two findings show where they should, and nowhere else."""

from __future__ import annotations

import pytest

from testbed.checks import Status
from testbed.checks.findings import Transferred, narrow_exhausts, over_seeds, tail_is_low_hit
from testbed.checks.metrics_file import MetricsFile
from testbed.errors import AnalysisError
from tests.fakes.metrics import metrics_of, pool_metrics

IDLE = pool_metrics()
FULL = pool_metrics(exhausted=0.7, wait=1.7, used=1.0)


def test_narrow_exhausts_where_wide_does_not() -> None:
    finding = narrow_exhausts([IDLE], [FULL])
    assert finding.status is Status.PASS
    assert "70.0% of the window" in finding.evidence


@pytest.mark.parametrize(
    ("wide", "narrow", "reason"),
    [
        (FULL, FULL, "wide is exhausted as well"),
        (FULL, IDLE, "window only"),
        (IDLE, IDLE, "window only"),
        (pool_metrics(wait=1.0), FULL, "too alike"),
        (pool_metrics(used=1.0), FULL, "more of the pool"),
        (IDLE, pool_metrics(exhausted=0.04, wait=1, used=0.9), "4.0% of the window only"),
    ],
)
def test_anything_less_is_no_exhaustion(
    wide: MetricsFile, narrow: MetricsFile, reason: str
) -> None:
    finding = narrow_exhausts([wide], [narrow])
    assert finding.status is Status.FAIL
    assert any(reason in text for text in finding.violations)


def test_seeds_are_judged_by_their_mean() -> None:
    unlucky = pool_metrics(exhausted=0.3, wait=0.2)
    assert narrow_exhausts([unlucky, IDLE, IDLE], [FULL, FULL, FULL]).status is Status.PASS
    assert narrow_exhausts([unlucky, unlucky], [FULL, FULL]).status is Status.FAIL


def test_different_loads_refuse_to_be_compared() -> None:
    with pytest.raises(AnalysisError, match="offered loads"):
        narrow_exhausts([pool_metrics(load=1.0)], [FULL])


def test_a_null_metric_refuses_to_be_compared() -> None:
    with pytest.raises(AnalysisError, match="null"):
        narrow_exhausts([metrics_of({"offered_load": None})], [FULL])


def transfers(slow_low: int, slow_high: int) -> list[Transferred]:
    """1,000 fast transfers with hits spread over 0.5 .. 1, and slow ones at either end."""
    rows = [Transferred(i, 0.5 + i / 2000, 0.0, 0.1, 1) for i in range(1000)]
    rows += [Transferred(2000 + i, 0.1, 0.0, 9.0, 1) for i in range(slow_low)]
    rows += [Transferred(3000 + i, 0.9, 0.0, 9.0, 1) for i in range(slow_high)]
    return rows


def test_a_tail_of_low_hits_is_found() -> None:
    finding = tail_is_low_hit(transfers(20, 0))
    assert finding.status is Status.PASS
    assert "100% of the 20 transfers" in finding.evidence


@pytest.mark.parametrize(("low", "high"), [(0, 20), (10, 10), (17, 3)])
def test_a_mixed_tail_is_not(low: int, high: int) -> None:
    assert tail_is_low_hit(transfers(low, high)).status is Status.FAIL


def test_too_few_transfers_have_no_tail() -> None:
    assert tail_is_low_hit(transfers(20, 0)[:99]).status is Status.INVALID


def test_a_finding_over_seeds_is_as_good_as_its_worst_seed() -> None:
    good, bad = tail_is_low_hit(transfers(20, 0)), tail_is_low_hit(transfers(0, 20))
    joined = over_seeds([(1, good), (2, bad)])
    assert joined.status is Status.FAIL
    assert joined.violations == ("seed 2: 0% is less than 90%",)
    with pytest.raises(AnalysisError):
        over_seeds([])
