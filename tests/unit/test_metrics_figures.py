"""Figures of metrics.json against a calculation by hand; see tests/fakes/hand_run.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.contract.event import Kind
from testbed.metrics import compute
from testbed.oracle import read_outcomes
from tests.fakes.hand_run import answer, figure, story, told, write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", story())


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("requests.offered", 3),
        ("requests.completed", 2),
        ("requests.failed", 1),
        ("requests.failed_by_reason", {"queue-full": 1}),
        ("transfer.p50_s", 0.65),  # of 0.4 and 0.9
        ("transfer.p90_s", 0.85),
        ("transfer.mean_s", 0.65),
        ("transfer.bytes", 2_000),
        ("transfer.bytes_by_kind", {"kv": 2_000}),
        ("pool.size", 1),
        ("pool.utilization", 0.9),  # 1.0 to 2.8 of 1.0 to 3.0
        ("pool.exhausted_fraction", 0.3),  # 1.2 to 1.5 and 1.6 to 1.9
        ("pool.queue_wait_mean_s", 0.3),
        ("pool.queue_wait_p99_s", 0.3),
        ("pool.occupancy_mean", 0.9),
        ("pool.occupancy_little", 0.65),  # two acquisitions, 0.4 + 0.9 s, in 2 s
        ("ttft.p50_s", 1.15),  # of 0.9 and 1.4
        ("tpot.p50_s", 0.1325),  # of 0.010 and 0.255
        ("stall.count", 0),  # the gap of 0.5 s is below 5 x 0.1325 s
        ("stall.p50_s", None),
        ("cache.p_hit", 0.6875),  # r1 and r2: (768 + 640) / 2048
        ("cache.md_hit", 0.75),
        ("link.wan1.utilization", 0.4375),  # half a sample, none, half a sample: 1,250 of 4,000 B
        ("link.wan1.drops", 1),
        ("link.wan1.backlog_max_bytes", 30),
        ("link.wan2.utilization", None),
        ("offered_load", 0.75),  # 3,000 B of 4,000 B
        ("handoff.count", None),
        ("goodput_rps", None),
        ("bcr", None),
        ("wall_s", 12.5),
        ("virtual_s", 60.25),
    ],
)
def test_every_figure_is_what_a_hand_calculation_gives(
    run: Path, path: str, expected: object
) -> None:
    metrics = compute(run, wall_s=12.5, virtual_s=60.25)
    if path == "link.wan1.utilization":
        expected = (2_000 * 0.5 + 500 * 0.5) * 8 / (16_000 * 2)
    assert figure(metrics, path) == (
        pytest.approx(expected) if isinstance(expected, float) else expected
    )


def test_the_oracle_is_fed_the_same_arrivals_and_sizes(run: Path) -> None:
    metrics = compute(run)
    rtt_s = 2 * 0.010_005  # the quicker leg and both access links, there and back
    held = 0.5 + rtt_s  # 1,000 bytes at 2,000 bytes a second
    outcomes = {outcome.req: outcome for outcome in read_outcomes(run / "oracle.jsonl")}
    assert outcomes[0].wait_s == 0.0
    assert outcomes[0].duration_s == pytest.approx(held)
    assert outcomes[2].wait_s == pytest.approx(1.2 + held - 1.6)
    assert figure(metrics, "oracle.p50_s") == pytest.approx(held)
    assert figure(metrics, "oracle.queue_wait_mean_s") == pytest.approx((1.2 + held - 1.6) / 2)


def test_metrics_can_be_redone_and_keep_the_times_of_the_run(run: Path) -> None:
    first = compute(run, wall_s=12.5, virtual_s=60.25)
    assert compute(run) == first
    assert json.loads((run / "metrics.json").read_text()) == first
    assert not list(run.glob("*.part"))


def test_the_file_has_exactly_the_names_of_the_contract(run: Path) -> None:
    assert list(compute(run)) == [
        "requests",
        "transfer",
        "pool",
        "ttft",
        "tpot",
        "gap",
        "stall",
        "handoff",
        "cache",
        "rld",
        "serving",
        "goodput_rps",
        "sla",
        "bcr",
        "link",
        "causes",
        "stalls",
        "slow_first_tokens",
        "slow_transfers",
        "oracle",
        "offered_load",
        "timeline_sha256",
        "wall_s",
        "virtual_s",
    ]


def test_a_stall_is_a_gap_beyond_the_floor_and_five_median_token_times(tmp_path: Path) -> None:
    events = [event for event in story() if event.kind is not Kind.TOKEN]
    events += answer(1, 2_000, 2_010, 2_020, 2_030)[:-1]
    events += answer(2, 2_100, 2_300, 2_501, 2_511)[:-1]  # gaps of 200 (no stall), 201, 10 ms
    metrics = compute(write_run(tmp_path / "run", events))
    # TPOT 10 ms and 137 ms, median 73.5 ms, five times that is 367.5 ms: no stall yet
    assert figure(metrics, "stall.count") == 0
    events += answer(3, 2_000, 2_400)[:-1]  # one more gap, of 400 ms, of a request that failed
    metrics = compute(write_run(tmp_path / "again", events))
    assert figure(metrics, "stall.count") == 1
    assert figure(metrics, "stall.max_s") == pytest.approx(0.4)


def test_a_request_that_nobody_reports_is_failed_and_unreported(tmp_path: Path) -> None:
    events = [event for event in story() if event.kind is not Kind.REQUEST_FAILED]
    metrics = compute(write_run(tmp_path / "run", events))
    assert figure(metrics, "requests.failed_by_reason") == {"unreported": 1}


def test_a_request_both_answered_and_failed_is_failed(tmp_path: Path) -> None:
    events = [*story(), told(3_500, "c1", Kind.REQUEST_FAILED, req=1, reason="digest")]
    metrics = compute(write_run(tmp_path / "run", events))
    assert figure(metrics, "requests.completed") == 1
    assert figure(metrics, "requests.failed") == 2


def test_a_closed_loop_counts_what_was_sent_in_the_window_and_has_no_load(tmp_path: Path) -> None:
    metrics = compute(write_run(tmp_path / "run", story(), closed=2))
    assert figure(metrics, "requests.offered") == 3
    assert figure(metrics, "offered_load") is None


def test_a_run_without_transfers_has_figures_that_say_so(tmp_path: Path) -> None:
    metrics = compute(write_run(tmp_path / "run", [told(0, "c1", Kind.BARRIER)]))
    assert figure(metrics, "transfer.p50_s") is None
    assert figure(metrics, "oracle.p50_s") is None
    assert figure(metrics, "pool.utilization") == 0.0
    assert figure(metrics, "ttft.p50_s") is None
