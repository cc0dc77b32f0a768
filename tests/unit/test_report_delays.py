"""The report has one plain sentence for each of the worst delays, and counts their roots."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.checks.metrics_file import MetricsFile, read_metrics
from testbed.errors import AnalysisError
from testbed.metrics.attribution.record import Causes, Delay, Link, Roots, Share
from testbed.metrics.compute import compute
from testbed.report.delay_table import SHOWN_MAX, delay_tables, read_delays, sentence
from testbed.report.run_report import run_page
from testbed.report.summary import summarize
from tests.fakes.fake_run import FakeRun
from tests.fakes.run_folder import write_run_folder

pytestmark = pytest.mark.unit

HELD = Delay(
    what="stall", req=17, position=12, source="md1", begin_s=2.0, length_s=0.412, root="fault",
    fault="down-1", subject="wan1 forward", waits={"pool": 0.31, "transfer": 0.092, "load": 0.01},
    shares=(Share(cause="fault", fault="down-1", seconds=0.3, share=0.73),), unexplained_s=0.1,
    chain=(
        Link(kind="wait", subject="pool at p1->md1", begin_s=2, end_s=2.3, share=0.75),
        Link(kind="transfer", subject="request 9 p1->md1", begin_s=1, end_s=2.3, share=0.73,
             evidence="1,000 bytes, 38 segments sent again"),
        Link(kind="connection", subject="p1->md1 3", begin_s=1, end_s=2.3, share=0.73),
        Link(kind="leg", subject="wan1 forward", begin_s=1, end_s=2.3, share=0.7, evidence="seen"),
        Link(kind="fault", subject="down-1: down on wan1", begin_s=1.5, end_s=2.1, share=0.24),
    ),
)  # fmt: skip


def test_a_sentence_names_waits_transfer_leg_and_fault() -> None:
    assert sentence(HELD) == (
        "request 17 had no token for 412 ms before token 12: its KV waited for a connection for "
        "310 ms, its KV was under way for 92.0 ms, held by request 9 p1->md1 on connection 3 "
        "(1,000 bytes, 38 segments sent again); fault down-1 on wan1 forward (seen) explains "
        "300 ms; 100 ms are unexplained."
    )


@pytest.mark.parametrize(
    ("root", "words"),
    [
        ("congestion", "wan1 forward was full"),
        ("memory", "the device memory of wan1 forward was full"),
        ("unexplained", "nothing in the record explains most of it"),
    ],
)
def test_each_root_has_its_words(root: str, words: str) -> None:
    assert words in sentence(HELD.model_copy(update={"root": root, "fault": "", "chain": ()}))


@pytest.mark.parametrize(
    ("what", "words"),
    [("first-token", "had its first token after 412 ms"), ("transfer", "took 412 ms for md1")],
)
def test_each_sort_of_delay_has_its_words(what: str, words: str) -> None:
    assert words in sentence(HELD.model_copy(update={"what": what}))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    write_run_folder(folder, FakeRun(rate=20, warm_up_s=1, measure_s=2, pool=4))
    compute(folder)
    return folder


def change(run: Path, **fields: object) -> MetricsFile:
    path = run / "metrics.json"
    tree = json.loads(path.read_text())
    path.write_text(json.dumps({**tree, **fields}))
    return read_metrics(path)


def test_the_page_has_the_worst_of_each_sort_and_counts(run: Path) -> None:
    rows = [HELD.model_dump(mode="json")] * (SHOWN_MAX + 5)
    roots = Roots(
        count=15, examined=15, total_s=6.0, unexplained_s=1.5, by_cause={"fault": 15},
        by_fault={"down-1": 15},
    )  # fmt: skip
    causes = Causes(stalls=roots).model_dump(mode="json")
    change(run, stalls=rows, causes=causes, slow_transfers=[], slow_first_tokens=[])
    worst, counts = delay_tables(summarize(run))
    assert len(worst.rows) == SHOWN_MAX
    assert worst.rows[0][:4] == ("stall", "2.00 s", "412 ms", "fault down-1")
    assert counts.rows == (("stalls", "15", "fault 15", "down-1 15", "25.0 %"),)
    assert 'id="delays"' in run_page(summarize(run))


def test_a_run_without_delays_has_no_such_section(run: Path) -> None:
    change(run, stalls=[], slow_transfers=[], slow_first_tokens=[], causes={})
    assert delay_tables(summarize(run)) == ()
    assert 'id="delays"' not in run_page(summarize(run))


def test_metrics_of_an_earlier_version_have_none(run: Path) -> None:
    metrics = read_metrics(run / "metrics.json")
    tree = {key: value for key, value in metrics.tree.items() if key not in ("causes", "stalls")}
    tree = {key: value for key, value in tree.items() if not key.startswith("slow_")}
    assert read_delays(MetricsFile(metrics.path, tree)) == (Causes(), ())


def test_what_is_malformed_is_refused_with_its_key(run: Path) -> None:
    with pytest.raises(AnalysisError, match=r"req: Field required"):
        read_delays(change(run, stalls=[{"what": "stall"}]))
