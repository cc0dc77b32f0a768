"""The report's section of the serving plane shows what metrics.json says of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.contract.event import Kind, Value
from testbed.errors import AnalysisError
from testbed.metrics import compute
from testbed.metrics.serving_record import OutputRate, Parity, Preempted
from testbed.report import write_report
from testbed.report.otps_chart import otps_chart
from testbed.report.serving_tables import (
    bytes_table,
    hits_table,
    memory_table,
    serving_tables,
)
from testbed.report.summary import RunSummary, summarize
from tests.fakes.hand_run import Told
from tests.fakes.serving_run import serving_story, write_serving_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = write_serving_run(tmp_path / "run", serving_story())
    compute(folder)
    return folder


def rows_of(run: RunSummary, caption: str) -> dict[str, tuple[str, ...]]:
    assert run.serving is not None
    (table,) = [t for t in serving_tables(run, run.serving) if t.caption == caption]
    assert all(len(row) == len(table.head) for row in table.rows)
    return {row[0]: row[1:] for row in table.rows}


def test_the_routing_split_names_pipeline_reason_and_share(run: Path) -> None:
    rows = rows_of(summarize(run), "Which pipeline the router chose, and why")
    assert rows == {
        "P-MD": ("hit-at-threshold", "1", "33.3 %"),
        "P-RLD-MD": ("hit-below-threshold", "1", "33.3 %"),
        "none": ("not routed", "1", "33.3 %"),
    }


def test_stages_stand_side_by_side_by_pipeline(run: Path) -> None:
    rows = rows_of(summarize(run), "Where the time of a request went, means")
    assert rows["Queue at P"] == ("300 ms", "100 ms")
    assert rows["Transfer to MD"] == ("n/a", "500 ms")


def test_hits_and_bytes_are_shown_by_instance_and_by_kind(run: Path) -> None:
    summary = summarize(run)
    assert rows_of(summary, "What each prefix cache found, in blocks")["md1"][-1] == "68.8 %"
    assert rows_of(summary, "Payload by kind")["KV of full contexts, P to RLD"] == ("999 B",)


def test_every_answer_that_rld_shares_is_in_one_row(run: Path) -> None:
    rows = rows_of(summarize(run), "Relay decode and handoff")
    assert rows["Requests on a route over RLD and MD"] == ("1",)
    assert rows["Handed over from RLD to MD"] == ("1 catch-up",)
    assert rows["Ended by RLD itself"] == ("0",)
    assert rows["KV on MD's device to MD's first token, median"] == ("100 ms",)
    assert rows["Gap at the client from RLD's last to MD's first token, median"] == ("110 ms",)
    assert rows["Stalls at the client (gaps above 200 ms)"] == ("0",)
    assert "Not answered, or answered by another attempt" not in rows
    cut = [event for event in serving_story() if event.kind is not Kind.HANDOFF_END]
    other = write_serving_run(run.parent / "cut", cut)
    compute(other)
    rows = rows_of(summarize(other), "Relay decode and handoff")
    assert rows["Ended by RLD itself"] == ("1",)


def test_without_md_there_is_no_parity_and_rlds_hits_are_told(run: Path) -> None:
    summary = summarize(run)
    assert summary.serving is not None
    for rld, words in ((None, "P finds 50.0 %, RLD has no cache."), (0.25, ", RLD 25.0 %. No pro")):
        alone = Parity(p_hit=0.5, rld_hit=rld)
        (note,) = hits_table(summary.serving.model_copy(update={"parity": alone})).notes
        assert words in note
        assert "No prompt was matched at an MD" in note
        assert "n/a" not in note
    (note,) = hits_table(summary.serving).notes
    assert "a parity gap of 18.8 % between P and MD" in note


def test_bytes_are_told_to_be_those_of_completed_transfers(run: Path) -> None:
    on: dict[str, Value] = {"req": 2, "peer": "md1", "conn": 0, "reason": "timeout"}
    failed = Told(2_400, "p1", Kind.TRANSFER_FAILED, 0, on)
    other = write_serving_run(run.parent / "failed", [*serving_story(), failed])
    compute(other)
    (note,) = bytes_table(summarize(other)).notes
    assert note.endswith("there were 1.")


def test_ids_preemptions_and_the_service_level_are_shown(run: Path) -> None:
    summary = summarize(run)
    handoff = rows_of(summary, "Relay decode and handoff")
    assert set(handoff) > {"Token ids that RLD told MD", "Bytes of a message per id"}
    caption = "Sequences that were preempted for want of device memory"
    assert rows_of(summary, caption) == {"together": ("0", "0", "0")}
    level = rows_of(summary, "Service level, goodput and cost")
    assert level["Requests with a first token within 10.0 s"] == ("66.7 %",)
    assert "Benefit-cost ratio" not in level


def test_preemptions_are_added_up_by_instance(run: Path) -> None:
    summary = summarize(run)
    assert summary.serving is not None
    one = Preempted(preemptions=2, requests=1, recomputed_tokens=40)
    serving = summary.serving.model_copy(
        update={"preemptions": 4, "preempted": {"md1": one, "r1": one}}
    )
    assert memory_table(serving).rows == (
        ("md1", "2", "1", "40"), ("r1", "2", "1", "40"), ("together", "4", "2", "80"),
    )  # fmt: skip


def test_transfers_to_rld_are_in_no_picture_of_the_wan(run: Path) -> None:
    summary = summarize(run)
    assert [row.req for row in summary.transfers] == [1]
    assert float(summary.pool.busy.max()) <= 1.0
    assert summary.pool_size == 1


def test_the_page_has_the_section_and_its_chart_once(run: Path) -> None:
    page = write_report(run).read_text()
    assert page.count('id="serving"') == 1
    assert page.count('id="otps-handoff"') == 1


def test_the_curve_names_its_lowest_bin_and_skips_bins_without_answers() -> None:
    chart = otps_chart(
        OutputRate(at_s=(-0.15, -0.05, 0.05), tokens_per_s=(None, 6.0, 20.0), answers=(0, 3, 2))
    )
    assert chart is not None
    assert chart.traces[0].x == (-0.05, 0.05)
    assert "6.00 tokens/s at -0.05 s" in chart.alt


def test_without_a_handoff_there_is_no_curve() -> None:
    assert otps_chart(OutputRate()) is None


def test_a_serving_part_that_is_not_as_written_is_named(run: Path) -> None:
    path = run / "metrics.json"
    metrics = json.loads(path.read_text())
    del metrics["serving"]["pipelines"]
    path.write_text(json.dumps(metrics))
    with pytest.raises(AnalysisError, match=r"serving\.pipelines"):
        summarize(run)
