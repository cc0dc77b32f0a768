"""Reports are whole, self-contained, escape what they show and say what is missing."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from testbed.checks import Status, judge
from testbed.errors import AnalysisError
from testbed.report import Study, compare_study, write_comparison, write_report
from testbed.report.published import published_for, published_rows
from testbed.report.series import BINS, cdf, leg_series, pool_series
from testbed.report.summary import summarize
from tests.fakes.fake_run import FakeRun
from tests.fakes.metrics import write_rough_metrics
from tests.fakes.run_folder import write_run_folder

SMALL = FakeRun(rate=40, warm_up_s=2, measure_s=6, drain_s=40, pool=40, load=1.1)


class Outline(HTMLParser):
    """Collects what the tests look at: headings, ids, links and requests to elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.headings: list[int] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.outside: list[str] = []
        self.labelled: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            if name == "href" and value:
                self.links.append(value)
            if name in ("src", "srcset") or (tag == "link" and name == "href"):
                self.outside.append(f"{tag} {value}")
            if name == "aria-labelledby" and value:
                self.labelled.extend(value.split())


def outline(path: Path) -> Outline:
    parsed = Outline()
    parsed.feed(path.read_text())
    return parsed


def make(folder: Path, run: FakeRun) -> Path:
    write_run_folder(folder, run)
    write_rough_metrics(folder)
    judge(folder)
    return folder


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("runs") / "wide", SMALL)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = replace(SMALL, wide=False, scenario="pool-narrow-even")
    return make(tmp_path_factory.mktemp("runs") / "narrow", run)


def test_a_report_is_one_file_that_asks_for_nothing(wide: Path) -> None:
    path = write_report(wide)
    page = outline(path)
    assert path == wide / "report.html"
    assert page.outside == []
    assert [link for link in page.links if not link.startswith("#")] == []
    assert "default-src 'none'" in path.read_text()
    assert [p.name for p in wide.iterdir() if p.name.startswith(".")] == []


def test_headings_labels_and_links_of_a_report_lead_somewhere(wide: Path) -> None:
    page = outline(write_report(wide))
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:], strict=False))
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert set(page.labelled) <= set(page.ids)


def test_a_report_shows_published_figures_only_where_there_are_any(tmp_path: Path) -> None:
    known = write_report(make(tmp_path / "a", SMALL)).read_text()
    other = write_report(make(tmp_path / "b", replace(SMALL, scenario="hello"))).read_text()
    assert "18.9 s" in known
    assert "published</th>" not in other


def test_what_a_run_says_is_escaped(tmp_path: Path) -> None:
    run = make(tmp_path / "run", replace(SMALL, scenario="</script><b>x</b>"))
    (run / "scenario.yaml").write_text("name: <script>alert(1)</script>\n")
    text = write_report(run).read_text()
    assert "<script>alert" not in text
    assert "<b>x</b>" not in text


def test_an_unjudged_run_without_metrics_still_has_a_report(tmp_path: Path) -> None:
    run = write_run_folder(tmp_path / "run", SMALL)
    (run / "oracle.jsonl").unlink()
    (run / "fidelity.json").unlink()
    (run / "provenance.json").unlink()
    text = write_report(run).read_text()
    assert "Nobody has judged this run." in text
    assert "nobody compared the lab with the plan" in text


def test_a_run_without_traffic_still_has_a_report(tmp_path: Path) -> None:
    run = write_run_folder(tmp_path / "run", SMALL)
    (run / "workload.jsonl").write_text("")
    for name in ("c1", "p1", "md1", "lab"):
        path = run / "events" / f"{name}.jsonl"
        kept = [x for x in path.read_text().splitlines(keepends=True) if '"req":' not in x]
        path.write_text("".join(kept if name != "lab" else []))
    assert write_report(run).exists()


def test_chart_data_is_json_with_every_trace(wide: Path) -> None:
    text = write_report(wide).read_text()
    match = re.search(r'id="chart-data">(.*?)</script>', text)
    assert match is not None
    charts = json.loads(match[1])
    assert [c["id"] for c in charts] == ["transfer-cdf", "time-size", "pool-time", "leg-time"]
    assert all(len(t["x"]) == len(t["y"]) > 0 for c in charts for t in c["traces"])


def test_published_rows_name_the_scenarios_of_the_pool_study() -> None:
    assert {row.scenario for row in published_rows()} == {"pool-wide-skewed", "pool-narrow-even"}
    row = published_for("pool-narrow-even")
    assert row is not None
    assert row.value("transfer.p99_s") == 25.542
    assert row.value("ttft.p50_s") is None
    assert published_for("hello") is None


def test_a_distribution_keeps_its_ends() -> None:
    x, y = cdf([float(i) for i in range(10_000)])
    assert (x[0], x[-1], y[-1]) == (0.0, 9999.0, 1.0)
    assert len(x) <= 400
    assert all(abs(share - (value + 1) / 10_000) < 1e-12 for value, share in zip(x, y, strict=True))
    assert 9_989.0 in x  # P99.9 lies in the dense tail


def test_pool_series_integrates_to_the_time_that_connections_were_held(wide: Path) -> None:
    run = summarize(wide)
    series = run.pool
    span = (series.time_s[-1] - series.time_s[0]) * BINS / (BINS - 1)
    whole = write_run_folder(wide.parent / "again", SMALL)
    rows = [json.loads(x) for x in (whole / "events/p1.jsonl").read_text().splitlines()]
    held = sum(r["duration_ns"] for r in rows if r["kind"] == "transfer.acked") / 1e9
    assert series.busy.mean() * span == pytest.approx(held, rel=1e-6)
    assert series.busy.max() <= SMALL.pool


def test_leg_series_conserves_bytes_across_idle_gaps() -> None:
    from testbed.checks.moment import LinkSample

    def sample(t: int, size: int) -> LinkSample:
        return LinkSample(t, "wan1", "forward", size, 1, 0, 0, 500)

    series = leg_series([sample(1_000, 50), sample(4_000, 100)], "wan1", "forward", 8_000_000_000)
    assert series is not None
    assert series.utilization.sum() * 500 == pytest.approx(150)
    assert (series.utilization == 0).sum() == 6
    assert leg_series([], "wan1", "forward", 1) is None
    assert leg_series([sample(1_000, 50)], "wan1", "forward", 0) is None


def test_a_comparison_shows_both_and_their_findings(
    wide: Path, narrow: Path, tmp_path: Path
) -> None:
    write_report(wide)
    study = compare_study(Study("Table 2", (wide,), (narrow,), ablation=(("BBR", wide),)))
    path = write_comparison(study, tmp_path / "out" / "comparison.html")
    text, page = path.read_text(), outline(path)
    assert [f.check for f in study.findings] == [
        "every-run-passes",
        "narrow-exhausts-pool",
        "wide-tail-is-low-hit",
    ]
    assert study.status is Status.PASS
    assert "25.5 s" in text
    assert "18.9 s" in text
    assert "BBR" in text
    reports = [link for link in page.links if link.endswith("report.html")]
    assert all((path.parent / link).exists() for link in reports)
    assert len(reports) == 2
    assert page.outside == []


def test_a_sweep_is_drawn_with_its_range(wide: Path, narrow: Path, tmp_path: Path) -> None:
    more = [
        make(tmp_path / f"{kind}-{seed}", replace(SMALL, seed=seed, load=0.9, wide=kind == "w"))
        for kind, seed in (("w", 2), ("w", 3))
    ]
    study = compare_study(Study("Sweep", (wide,), (narrow,), sweep=tuple(more)))
    text = write_comparison(study, tmp_path / "c.html").read_text()
    match = re.search(r'id="chart-data">(.*?)</script>', text)
    assert match is not None
    charts = {chart["id"]: chart for chart in json.loads(match[1])}
    trace = charts["sweep-transfer-p99-s"]["traces"][0]
    assert trace["x"] == pytest.approx([0.9, 1.1])
    assert trace["low"][0] < trace["y"][0] < trace["high"][0]


def test_runs_that_differ_in_more_than_hit_rates_are_not_compared(
    wide: Path, tmp_path: Path
) -> None:
    other = replace(SMALL, wide=False, scenario="pool-narrow-even")
    for change, reason in (
        ({"pool": 41}, "pool"),
        ({"measure_s": 7.0}, "window"),
        ({"model": "smollm2-135m"}, "model"),
        ({"seed": 2}, "seeds"),
    ):
        folder = make(tmp_path / reason, replace(other, **change))
        with pytest.raises(AnalysisError, match=reason):
            compare_study(Study("Table 2", (wide,), (folder,)))


def test_an_invalid_run_makes_the_comparison_invalid(wide: Path, tmp_path: Path) -> None:
    run = make(tmp_path / "n", replace(SMALL, wide=False, scenario="pool-narrow-even"))
    (run / "fidelity.json").unlink()
    judge(run)
    study = compare_study(Study("Table 2", (wide,), (run,)))
    assert study.status is Status.INVALID


def test_pool_series_of_no_events_is_zero(tmp_path: Path) -> None:
    from testbed.checks.history import History

    series = pool_series(History(), 1_000)
    assert series.busy.tolist() == [0.0] * BINS
