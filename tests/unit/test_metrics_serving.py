"""Figures of the serving plane against a calculation by hand; see tests/fakes/serving_run.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.contract.event import Kind
from testbed.metrics import compute
from testbed.metrics.tail import transfer_rows
from testbed.oracle import read_outcomes
from tests.fakes.hand_run import Told, figure, told
from tests.fakes.serving_run import (
    BLOCK_BYTES,
    FIXED_BYTES,
    SIZE,
    answered,
    matched,
    serving_story,
    write_serving_run,
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_serving_run(tmp_path / "run", serving_story())


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("pipelines", {"P-MD": 1, "P-RLD-MD": 1}),
        (
            "reasons",
            {"P-MD": {"hit-at-threshold": 1}, "P-RLD-MD": {"hit-below-threshold": 1}},
        ),
        ("unrouted", 1),
        ("instances.p1.hit", 0.5),  # 2 + 6 of 16; the warm-up's match does not count
        ("instances.p1.requests", 2),
        ("instances.md1.hit", 0.6875),  # 3 + 8 of 16
        ("parity.gap", 0.1875),
        ("parity.unequal_fraction", 1.0),
        ("forecast_p.predicted_hit", 0.625),
        ("forecast_p.found_hit", 0.5),
        ("forecast_p.exact_fraction", 0.5),
        ("forecast_md.predicted_hit", 0.75),
        ("forecast_md.found_hit", 0.6875),
        ("handoffs_by_mode", {"catch-up": 1}),
        ("rld_peak", 2),  # request 0 of the warm-up is there until 1.5 s
        ("queue_wait.p50_s", 0.2),  # of 0.1 and 0.3
        ("stages.P-RLD-MD.requests", 1),
        ("stages.P-RLD-MD.prefill_queue_s", 0.1),
        ("stages.P-RLD-MD.prefill_s", 0.2),
        ("stages.P-RLD-MD.connection_wait_s", 0.1),
        ("stages.P-RLD-MD.transfer_s", 0.5),
        ("stages.P-RLD-MD.eager_s", 0.58),
        ("stages.P-RLD-MD.handoff_s", 0.1),
        ("stages.P-MD.prefill_queue_s", 0.3),
        ("stages.P-MD.transfer_s", None),
    ],
)
def test_every_figure_is_what_a_hand_calculation_gives(
    run: Path, path: str, expected: object
) -> None:
    value = figure(compute(run), f"serving.{path}")
    assert value == (pytest.approx(expected) if isinstance(expected, float) else expected)


def test_the_output_rate_shows_the_gap_of_the_handoff_and_no_false_one(run: Path) -> None:
    rate = figure(compute(run), "serving.otps")
    assert isinstance(rate, dict)
    bins = dict(zip(rate["at_s"], rate["tokens_per_s"], strict=True))
    assert len(bins) == 40
    assert bins[-0.65] is None  # its first token came 0.69 s before: not the whole bin
    assert bins[-0.55] == pytest.approx(50.0)
    assert bins[-0.15] == pytest.approx(50.0)
    assert bins[-0.05] == 0.0
    assert bins[0.05] == pytest.approx(50.0)
    assert bins[0.45] == pytest.approx(50.0)
    assert bins[0.55] is None  # its last token came 0.58 s after
    assert rate["answers"][20] == 1


def test_pool_load_and_transfers_leave_the_fast_link_to_rld_out(run: Path) -> None:
    metrics = compute(run)
    assert figure(metrics, "pool.utilization") == pytest.approx(0.25)  # 1.501 to 2.001 of 2 s
    assert figure(metrics, "transfer.bytes_by_kind") == {"kv": SIZE, "kv-relay": 999}
    assert figure(metrics, "offered_load") == pytest.approx(SIZE / 4_000)


def test_the_oracle_gets_the_sizes_that_md_lacked_and_no_transfer_to_rld(run: Path) -> None:
    compute(run)
    (outcome,) = read_outcomes(run / "oracle.jsonl")
    assert (outcome.req, outcome.size_bytes) == (1, SIZE)
    assert outcome.at_s == pytest.approx(1.401)
    assert outcome.wait_s == 0.0
    assert outcome.duration_s == pytest.approx(SIZE / 2_000 + 2 * 0.010_005)


def test_a_transfer_that_never_started_is_offered_to_the_oracle_as_well(tmp_path: Path) -> None:
    events = serving_story()
    events += [matched(1_102, "md1", 3, 7)]
    events += [Told(1_600, "p1", Kind.POOL_QUEUED, 0, {"req": 3, "peer": "md1"})]
    run = write_serving_run(tmp_path / "run", events)
    compute(run)
    sizes = {outcome.req: outcome.size_bytes for outcome in read_outcomes(run / "oracle.jsonl")}
    assert sizes == {1: SIZE, 3: BLOCK_BYTES + FIXED_BYTES}


def test_what_stays_within_a_site_loads_no_leg(tmp_path: Path) -> None:
    run = write_serving_run(tmp_path / "run", serving_story(), decode_site="a")
    metrics = compute(run)
    assert figure(metrics, "offered_load") == 0.0
    assert read_outcomes(run / "oracle.jsonl") == ()


@pytest.mark.parametrize(
    ("times_ms", "expected"),
    [
        ((2_500, 2_510, 2_520), 1.0),
        ((2_500, 2_560, 2_600), 1.0),  # exactly 50 ms per token
        ((2_500, 2_560, 2_602), 0.5),
        ((11_500,), 1.0),  # exactly 10 s, and no time per token
        ((11_501,), 0.5),
    ],
)
def test_goodput_counts_the_answers_that_keep_both_parts_of_the_level(
    tmp_path: Path, times_ms: tuple[float, ...], expected: float
) -> None:
    others = [
        event for event in serving_story()
        if event.fields.get("req") != 2 or event.kind not in (Kind.TOKEN, Kind.REQUEST_DONE)
    ]  # fmt: skip
    run = write_serving_run(tmp_path / "run", [*others, *answered(2, 0, *times_ms)])
    assert figure(compute(run), "goodput_rps") == expected


def test_who_leaves_rld_as_another_comes_is_not_counted_with_it(tmp_path: Path) -> None:
    others = [
        event for event in serving_story()
        if event.kind is not Kind.RELAY_END or event.fields["req"] != 0
    ]  # fmt: skip
    left = told(1_402, "r1", Kind.RELAY_END, req=0, tokens=1, ids=1, cause="last")
    run = write_serving_run(tmp_path / "run", [*others, left])
    assert figure(compute(run), "serving.rld_peak") == 1


def test_kv_that_is_at_md_before_the_first_token_leaves_rld_no_eager_time(tmp_path: Path) -> None:
    others = [event for event in serving_story() if event.kind is not Kind.HANDOFF_START]
    early = told(1_410, "md1", Kind.HANDOFF_START, req=1, mode="one-shot", heard=0)
    metrics = compute(write_serving_run(tmp_path / "run", [*others, early]))
    assert figure(metrics, "serving.stages.P-RLD-MD.eager_s") == 0.0
    assert figure(metrics, "serving.handoffs_by_mode") == {"one-shot": 1}


def test_the_tail_tells_the_hit_that_mds_cache_had(run: Path) -> None:
    (row,) = transfer_rows(run)
    assert (row.req, row.hit_share) == (1, 3 / 8)
    assert row.oracle_wait_s == 0.0
