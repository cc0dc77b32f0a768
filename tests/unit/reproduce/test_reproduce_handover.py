"""Figures that studies read from events, against a calculation by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.checks.finding import Status
from testbed.checks.metrics_file import MetricsFile
from testbed.contract.event import Kind, Value
from testbed.metrics.run import read_run
from testbed.reproduce import fig7, prfaas, table1
from testbed.reproduce.amortise import busy_share
from testbed.reproduce.handover import figure, handovers, mean, spread
from testbed.reproduce.outcome import RunOutcome
from testbed.reproduce.routed import pipelines, relayed_share, request_bytes, turned_away
from testbed.reproduce.table5 import id_bytes
from tests.fakes.hand_run import Told, told
from tests.fakes.serving_run import SIZE, sent, serving_story, write_serving_run

INCREMENT = 30 * 5_031


def increment() -> list[Told]:
    """RLD's KV of request 1: queued at 2.010, acknowledged at 2.060 s."""
    on: dict[str, Value] = {"req": 1, "peer": "md1"}
    return [
        Told(2_010, "r1", Kind.POOL_QUEUED, 0, on),
        Told(2_020, "r1", Kind.POOL_ACQUIRED, 0, on),
        Told(2_060, "r1", Kind.TRANSFER_ACKED, INCREMENT, on),
        told(2_030, "md1", Kind.DECODE_START, req=1, batch=1),
    ]


def outcome(folder: Path, tree: dict[str, object] | None = None) -> RunOutcome:
    return RunOutcome(
        "one", 1, folder, MetricsFile(folder / "metrics.json", tree or {}), Status.PASS
    )


def test_a_handoff_is_measured_at_the_client_at_md_and_at_rld(tmp_path: Path) -> None:
    folder = write_serving_run(tmp_path / "run", [*serving_story(), *increment()])
    (found,) = handovers(folder)
    assert found.tokens == 30
    assert found.gap_s == pytest.approx(0.110)  # RLD's last token at 2.000, MD's first at 2.110
    assert found.extend_s == pytest.approx(0.070)
    assert found.extend_100_s == pytest.approx(0.070 / 2 * 7)  # 30 tokens in 2 steps, 100 in 7
    assert found.increment_s == pytest.approx(0.050)
    assert found.increment_bytes == INCREMENT


def test_a_figure_of_too_few_handoffs_is_none(tmp_path: Path) -> None:
    run = outcome(write_serving_run(tmp_path / "run", [*serving_story(), *increment()]))
    assert figure(lambda one: one.gap_s, mean)(run) == pytest.approx(0.110)
    assert figure(lambda one: one.gap_s, spread, 2)(run) is None
    assert figure(lambda one: None, mean)(run) is None


def test_rld_is_busy_while_it_holds_a_request(tmp_path: Path) -> None:
    folder = write_serving_run(tmp_path / "run", serving_story())
    places = next(
        one for one in read_run(folder).plan.agents if one.node == "r1"
    ).hardware.max_batch
    # 1.300 to 1.500 and 1.402 to 2.105 of a window of 2 s
    assert busy_share(outcome(folder)) == pytest.approx((0.200 + 0.703) / 2 / places)


def test_rates_count_what_falls_into_the_window(tmp_path: Path) -> None:
    run = outcome(write_serving_run(tmp_path / "run", serving_story()))
    assert table1.prefills_per_s(run) == pytest.approx(2 / 2)
    assert table1.tokens_per_s(run) == pytest.approx(63 / 2)


def test_ids_cost_the_bytes_that_rld_counted(tmp_path: Path) -> None:
    events = [
        Told(one.ms, one.node, one.kind, 800, one.fields) if one.kind is Kind.RELAY_END else one
        for one in serving_story()
    ]
    assert id_bytes(outcome(write_serving_run(tmp_path / "a", events))) == pytest.approx(
        1600 / 33 * 100
    )
    assert id_bytes(outcome(write_serving_run(tmp_path / "b", serving_story()))) is None


def test_egress_is_what_crosses(tmp_path: Path) -> None:
    far = outcome(write_serving_run(tmp_path / "far", serving_story()))
    near = outcome(write_serving_run(tmp_path / "near", serving_story(), decode_site="a"))
    assert prfaas.egress_gbit(far) == pytest.approx(SIZE * 8 / 2 / 1e9)
    assert prfaas.egress_gbit(near) == 0
    events = [*serving_story(), *sent(0, "md1", SIZE, 900, 900, 1_100)]  # of the warm-up
    early = outcome(write_serving_run(tmp_path / "early", events))
    assert prfaas.egress_gbit(early) == pytest.approx(1.5 * SIZE * 8 / 2 / 1e9)
    assert prfaas.ttft_mean(far) == pytest.approx((0.320 + 1.0) / 2)


def test_shares_of_a_router() -> None:
    tree: dict[str, object] = {
        "serving": {
            "pipelines": {"P-MD": 3, "P-RLD-MD": 1},
            "reasons": {"P-MD": {"prefilled-near": 2, "direct": 1}, "P-RLD-MD": {"wan-slow": 1}},
        },
        "requests": {"completed": 4}, "transfer": {"bytes": 400},
    }  # fmt: skip
    run = outcome(Path(), tree)
    assert relayed_share(run) == 0.25
    assert prfaas.offloaded_share(run) == 0.5
    assert request_bytes(run) == 100
    assert pipelines(outcome(Path())) == {}
    assert relayed_share(outcome(Path())) is None


def test_who_was_turned_away_is_counted_and_never_guessed() -> None:
    routed: dict[str, object] = {"pipelines": {"P-MD": 3}}
    full: dict[str, object] = {**routed, "reasons": {"P-MD": {"relay-full": 2}}}
    assert turned_away(outcome(Path(), {"serving": full})) == 2
    assert turned_away(outcome(Path(), {"serving": routed})) == 0
    assert turned_away(outcome(Path())) is None


def test_the_spread_of_transfers_of_one_size_is_told_apart(tmp_path: Path) -> None:
    story = serving_story()
    alike = [*story, *sent(2, "md1", SIZE, 1_901, 1_901, 2_401)]
    small = [*story, *sent(2, "md1", 1_000, 1_901, 1_901, 2_401)]
    same, other = (
        fig7.size_free_spread(outcome(write_serving_run(tmp_path / name, events)))
        for name, events in (("same", alike), ("other", small))
    )
    assert same == pytest.approx(1.0)
    assert other is not None
    assert other > 1.2
