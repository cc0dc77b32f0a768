"""Runs in two labs and under two clocks can be found apart; one odd live run is not enough."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agreement import MOST_LIVE_RUNS, agree, agree_live


def run(transfer_s: float, count: int = 16) -> dict[str, object]:
    return {
        "transfer": {"p50_s": transfer_s}, "pool": {"utilization": 0.03},
        "stall": {"count": count, "p50_s": 0.27}, "handoff": {"count": count, "gap_p50_s": 0.3},
    }  # fmt: skip


def numbered(*transfers_s: float) -> tuple[list[int], Iterator[float]]:
    return [], iter(transfers_s)


def test_runs_that_lie_apart_do_not_agree() -> None:
    agree(run(1.0), run(1.15))
    with pytest.raises(AssertionError):
        agree(run(1.0), run(1.5))


def test_runs_with_few_handoffs_are_not_compared() -> None:
    with pytest.raises(AssertionError):
        agree(run(1.0, count=3), run(1.0))


@pytest.mark.parametrize(
    ("transfers_s", "runs", "agrees"),
    [
        ((1.0,), 1, True),
        ((1.6, 1.0, 1.1), MOST_LIVE_RUNS, True),
        ((1.6, 1.7, 1.0), MOST_LIVE_RUNS, False),
        ((0.5, 1.0, 0.5), MOST_LIVE_RUNS, False),
    ],
)
def test_the_median_of_three_decides_where_one_live_run_lies_outside(
    transfers_s: tuple[float, ...], runs: int, agrees: bool
) -> None:
    numbers, values = numbered(*transfers_s)

    def live(number: int) -> dict[str, object]:
        numbers.append(number)
        return run(next(values))

    if agrees:
        agree_live(live, run(1.0))
    else:
        with pytest.raises(AssertionError):
            agree_live(live, run(1.0))
    assert numbers == list(range(1, runs + 1))
