"""The top of a run's page tells failures, first tokens, the busiest link and every wait."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.checks import judge
from testbed.contract.event import Kind, Value
from testbed.metrics import compute
from testbed.report import write_report
from testbed.report.headline import Tile, counted, tiles
from testbed.report.link_table import SHOWN_MAX, link_table
from testbed.report.run_tables import figures_table
from testbed.report.summary import RunSummary, summarize
from tests.fakes.fake_run import FakeRun
from tests.fakes.hand_run import Told, story, told, write_run
from tests.fakes.run_folder import write_run_folder

REFUSED: dict[str, Value] = {"req": 3, "peer": "md1", "reason": "queue-full"}


def tile(run: RunSummary, label: str) -> Tile:
    return next(one for one in tiles(run) if one.label == label)


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = FakeRun(
        rate=20, warm_up_s=1, measure_s=3, drain_s=30, pool=4, load=1.1,
        fail=frozenset(range(5, 75)),
    )  # fmt: skip
    folder = write_run_folder(tmp_path_factory.mktemp("runs") / "failing", run)
    compute(folder)
    judge(folder)
    return folder


def summary(folder: Path, *more: Told) -> RunSummary:
    write_run(folder, [*story(), *more])
    compute(folder)
    tree = json.loads((folder / "metrics.json").read_text())
    run = summarize_metrics(folder, tree)
    assert run.metrics is not None
    return run


def summarize_metrics(folder: Path, tree: object) -> RunSummary:
    (folder / "metrics.json").write_text(json.dumps(tree))
    for path in (folder / "events").glob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:  # what the checks read beside what metrics need
            if line["kind"] == "pool.acquired":
                line["wait_ns"] = 0
            if line["kind"] == "transfer.acked":
                line["duration_ns"] = 1
            if line["kind"] == "token":
                line["token"] = 1
            if line["kind"] == "request.done":
                line["tokens"] = [1]
            if line["kind"] == "link.sample":
                line["packets"] = 1
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return summarize(folder)


def test_failures_stand_first_with_their_reasons(failing: Path) -> None:
    run = summarize(failing)
    first = tiles(run)[0]
    assert first.label == "Failed requests"
    failed, offered = run.metric("requests.failed"), run.metric("requests.offered")
    assert first.value == f"{failed:.0f} of {offered:.0f}"
    assert first.detail == (
        f"transfer-timeout {failed:.0f}; in the window; 70 of 80 in the whole run"
    )
    page = write_report(failing).read_text()
    assert "70 of 80 requests failed: transfer-timeout 70" in page


def test_a_window_that_is_the_run_needs_no_second_count(tmp_path: Path) -> None:
    run = FakeRun(rate=20, warm_up_s=0, measure_s=4, drain_s=30, pool=4, fail=frozenset({3}))
    folder = write_run_folder(tmp_path / "run", run)
    compute(folder)
    judge(folder)
    assert tile(summarize(folder), "Failed requests") == Tile(
        label="Failed requests", value="1 of 80", detail="transfer-timeout 1"
    )


def test_first_tokens_say_over_whom_they_are_taken(tmp_path: Path) -> None:
    run = summary(tmp_path, told(2_050, "c1", Kind.TOKEN, req=3, pos=0, source="md1"))
    one = tile(run, "First token, median")
    assert (one.value, one.detail) == ("1.15 s", "over 2 completed requests")
    note = figures_table(run).notes[0]
    assert "2 completed requests" in note
    assert "1 more had their first token, after 50.0 ms in the median, and failed later" in note


def test_the_busiest_link_is_named_for_the_window_and_for_the_run(tmp_path: Path) -> None:
    one = tile(summary(tmp_path), "Busiest link, in the window")
    # half of 2,000 and half of 500 bytes in 2 s of 2,000 B/s; 3,499 bytes in 3.5 s
    assert one.value == "31.2 %"
    assert one.detail == "wan1; whole run 50.0 %"


def test_a_pool_that_refuses_says_so(tmp_path: Path) -> None:
    one = tile(
        summary(tmp_path, Told(2_050, "p1", Kind.POOL_REFUSED, 0, REFUSED)),
        "Wait for a connection, 99th percentile",
    )
    assert (one.value, one.detail) == ("300 ms", "2 waits, refused: queue-full 1")


def test_drops_and_segments_sent_again_are_key_figures(tmp_path: Path) -> None:
    seen: dict[str, Value] = {"req": 1, "peer": "md1", "retrans": 7}
    run = summary(tmp_path, Told(1_900, "p1", Kind.TCP_INFO, 0, seen))
    rows = {row[0]: row[1] for row in figures_table(run).rows}
    assert rows["TCP segments sent again"] == "7"
    assert rows["Packets dropped on all links in the window"] == "1"


def test_a_column_without_figures_is_left_out(tmp_path: Path, failing: Path) -> None:
    run = summary(tmp_path)
    assert figures_table(run).head == ("figure", "emulated", "oracle", "published")
    tree = json.loads((tmp_path / "metrics.json").read_text())
    tree["oracle"] = dict.fromkeys(tree["oracle"])
    bare = figures_table(summarize_metrics(tmp_path, tree))
    assert bare.head == ("figure", "emulated", "published")
    assert all(len(row) == 3 for row in bare.rows)
    assert not any("oracle" in note for note in bare.notes)


def test_links_are_listed_by_use_and_the_idle_ones_counted(tmp_path: Path) -> None:
    run = summary(tmp_path)
    table = link_table(run)
    assert table.rows[0][:4] == ("wan1", "31.2 %", "50.0 %", "1")
    tree = json.loads((tmp_path / "metrics.json").read_text())
    tree["link"] |= {f"l{i}": {"utilization": i / 100, "drops": 0} for i in range(20)}
    many = link_table(summarize_metrics(tmp_path, tree))
    assert [row[0] for row in many.rows[:2]] == ["wan1", "l19"]
    assert len(many.rows) == SHOWN_MAX
    assert "links that are less busy are not shown" in many.notes[-1]


def test_without_metrics_every_tile_says_so(tmp_path: Path) -> None:
    folder = write_run_folder(tmp_path / "run", FakeRun(rate=20, warm_up_s=1, measure_s=2, pool=4))
    run = summarize(folder)
    assert {one.value for one in tiles(run)} == {"n/a"}
    assert link_table(run).rows == ()


def test_reasons_come_most_frequent_first() -> None:
    assert counted({"late": 1, "deadline": 3, "b": 1}) == "deadline 3, b 1, late 1"
