"""The findings of the pool study hold, fail and cannot be told; its tables leave nothing out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from testbed.checks.finding import Status
from testbed.checks.metrics_file import MetricsFile
from testbed.metrics.compute import compute
from testbed.reproduce import delivery, pool
from testbed.reproduce.extent import Extent
from testbed.reproduce.outcome import Outcomes, RunOutcome
from testbed.reproduce.poolfinding import MEAN, P50, P99, REFUSED, SMALL, TRANSFER
from testbed.reproduce.pooltable import charts, tables
from testbed.reproduce.poolway import FULL, LIGHT, LOADS, SCENARIOS, WAYS, label, variants
from testbed.reproduce.reduce import judge
from testbed.run.prepare import prepare
from tests.fakes.fake_run import FakeRun
from tests.fakes.outcomes import outcomes
from tests.fakes.run_folder import write_run_folder

SEEDS = (1, 2, 3)
LIGHT_P50 = {
    "fifo": 0.061, "fifo-warm": 0.021, "per-transfer": 0.1, "lifo": 0.021, "lanes": 0.022,
    "stripes": 0.05,
}  # fmt: skip
SMALL_P90 = {"few": 0.8, "few-deadline": 0.8, "few-small": 0.2, "few-preempt": 0.15}


def figures(**changes: float) -> Outcomes:
    """Figures that show all findings; ``changes``: way and measure, joined by two underlines."""
    values: dict[tuple[str, str], dict[int, float]] = {}
    for hits in SCENARIOS:
        for way in WAYS:
            for load in way.loads:
                own = {
                    P50: LIGHT_P50[way.name] if load == LIGHT else 0.3,
                    P99: 3.0, MEAN: 0.6, SMALL: SMALL_P90.get(way.name, 0.4),
                    TRANSFER: 0.06, REFUSED: 0.2 if (way.name, load) == ("lanes", FULL) else 0.0,
                }  # fmt: skip
                for name, value in own.items():
                    key = f"{load}__{way.name}__{name}".replace("-", "_").replace(".", "_")
                    values[label(hits, load, way.name), name] = dict.fromkeys(
                        SEEDS, changes.get(key, value)
                    )
    return outcomes(values)


def status(name: str, seen: Outcomes) -> Status:
    claim = next(one for one in pool.STUDY.claims if one.name == name)
    return judge(claim, seen).status


def test_every_finding_holds_on_figures_that_show_it() -> None:
    assert {one.name: status(one.name, figures()) for one in pool.STUDY.claims} == {
        one.name: Status.PASS for one in pool.STUDY.claims
    }


@pytest.mark.parametrize(
    ("claim", "change"),
    [
        ("fresh-costs-several-fold", {"light__per_transfer__delivery_p50_s": 0.06}),
        ("idle-is-as-cold-as-fresh", {"light__fifo__transfer_p50_s": 0.05}),
        ("idle-is-as-cold-as-fresh", {"light__fifo__transfer_p50_s": 0.07}),
        ("kept-windows-are-the-gain", {"light__fifo_warm__delivery_p50_s": 0.04}),
        ("full-line-hides-it", {"full__per_transfer__delivery_mean_s": 1.9}),
        ("lanes-turn-away", {"full__lanes__refused_share": 0.0}),
        ("lanes-turn-away", {"full__lifo__refused_share": 0.02}),
        ("small-need-not-queue", {"full__few_small__delivery_small_p90_s": 0.5}),
        ("preempting-helps-the-small", {"full__few_preempt__delivery_small_p90_s": 0.2}),
        ("deadline-is-arrival-here", {"full__few_deadline__delivery_p99_s": 3.1}),
    ],
)
def test_a_finding_that_does_not_show_fails(claim: str, change: dict[str, float]) -> None:
    assert status(claim, figures(**change)) is Status.FAIL


def test_all_runs_of_a_distribution_have_the_same_arrivals_and_hits(tmp_path: Path) -> None:
    drawn: dict[str, set[tuple[tuple[int, int], ...]]] = {}
    for one in variants(Extent.QUICK):
        if one.label.split("-")[1] == LIGHT:
            requests = prepare(one.scenario, one.overrides_of(1), 1, place=tmp_path).requests
            drawn.setdefault(one.scenario, set()).add(
                tuple((request.at_ns, request.hit_tokens) for request in requests)
            )
    assert [len(each) for each in drawn.values()] == [1, 1]


def test_what_is_not_measured_is_an_empty_cell_and_what_is_not_run_no_table() -> None:
    full = tables(figures())
    assert len(full) == len(SCENARIOS) * len(LOADS)
    assert [len(table.rows) for table in full] == [
        sum(load in way.loads for way in WAYS) for _ in SCENARIOS for load in LOADS
    ]
    assert all(len(row) == len(table.head) for table in full for row in table.rows)
    quick = tables(Outcomes(Extent.QUICK, {}, {}))
    assert {table.caption.partition(",")[0] for table in quick} == {
        "Wide and skewed", "Narrow and even",
    }  # fmt: skip
    assert charts(Outcomes(Extent.NORMAL, {}, {})) == ()


def test_a_chart_shows_what_was_run_and_rises_to_the_last_percentile(tmp_path: Path) -> None:
    folder = write_run_folder(tmp_path / "run", FakeRun())
    own = label("wide", FULL, "few")
    run = RunOutcome(own, 1, folder, MetricsFile(folder, {}), Status.PASS)
    (chart,) = charts(Outcomes(Extent.NORMAL, {own: (run,)}, {}))
    (trace,) = chart.traces
    assert chart.id == "cdf-wide-full"
    assert trace.y[-1] == 0.995
    assert list(trace.x) == sorted(trace.x)
    assert trace.x[49] == pytest.approx(np.median(delivery.deliveries(folder).took_s), rel=1e-3)


def test_a_delivery_is_wait_and_transfer(tmp_path: Path) -> None:
    run = FakeRun()
    folder = write_run_folder(tmp_path / "run", run)
    metrics = compute(folder)
    seen = delivery.deliveries(folder)
    outcome = RunOutcome("any", 1, folder, MetricsFile(folder, metrics), Status.PASS)
    wait, transfer = (metrics[part] for part in ("pool", "transfer"))
    assert isinstance(wait, dict)
    assert isinstance(transfer, dict)
    total = float(str(wait["queue_wait_mean_s"])) + float(str(transfer["mean_s"]))
    assert delivery.mean(outcome) == pytest.approx(total)
    assert delivery.p50(outcome) == pytest.approx(float(np.median(seen.took_s)))
    assert delivery.p99(outcome) >= delivery.p50(outcome)  # type: ignore[operator]
    assert delivery.small_p90(outcome) is not None
    assert delivery.refused_share(outcome) == 0
