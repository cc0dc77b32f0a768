"""A study's runs become rows, findings, a status and a page."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.checks.finding import Finding, Status
from testbed.checks.verdict import Verdict
from testbed.errors import AnalysisError, UsageError
from testbed.report.results import figure_tables, write_results
from testbed.report.results_page import results_page
from testbed.reproduce.catalogue import known, study_of
from testbed.reproduce.estimate import estimate
from testbed.reproduce.extent import Extent
from testbed.reproduce.outcome import Outcomes
from testbed.reproduce.perform import jobs, outcome_of
from testbed.reproduce.reduce import every_run_passes, results_of, run_rows
from testbed.reproduce.study import Claim, Study, Variant
from testbed.run.execute import Finished
from tests.fakes.example_study import GOOD, STUDY, TTFT, lower, variants
from tests.fakes.outcomes import outcomes


def test_a_row_holds_mean_interval_and_what_was_published() -> None:
    row = results_of(STUDY, outcomes(GOOD)).rows[0]
    assert (row.variant, row.n, row.mean, row.published) == ("a", 2, 2.0, 9.8)
    assert row.low is not None
    assert row.high is not None
    assert row.low < 1.0 < 3.0 < row.high  # t with one degree of freedom: 12.7 standard errors
    assert "note" in row.source


def test_a_sensitivity_row_is_compared_at_common_seeds_only() -> None:
    row = next(r for r in results_of(STUDY, outcomes(GOOD)).rows if r.variant == "b-far")
    assert (row.against, row.times, row.low) == ("b", 2.0, None)


def test_a_contrast_is_computed_seed_by_seed() -> None:
    row = results_of(STUDY, outcomes(GOOD)).rows[-1]
    assert row.by_seed == {1: 0.75, 2: 0.25}
    assert row.mean == 0.5


def test_a_claim_that_does_not_hold_fails_the_study() -> None:
    bad = {**GOOD, ("b", TTFT): {1: 0.5, 2: 0.5}}
    results = results_of(STUDY, outcomes(bad))
    assert results.status is Status.FAIL
    assert "a is lower." in results.words


def test_a_claim_without_its_figures_is_invalid() -> None:
    results = results_of(STUDY, outcomes({("a", TTFT): {1: 1.0}}))
    assert results.status is Status.INVALID
    assert "was not run" in results.findings[1].violations[0]


def test_an_unfaithful_run_makes_the_study_invalid_whatever_shows() -> None:
    assert results_of(STUDY, outcomes(GOOD, status=Status.INVALID)).status is Status.INVALID
    assert results_of(STUDY, outcomes({}, Extent.QUICK)).status is Status.INVALID


def test_what_quick_cannot_show_is_left_out_there() -> None:
    small = Study(
        name="example", title="", question="", variants=variants, measures=(),
        claims=(Claim("a-lower", "a is lower.", lower, quick=False),), assumptions=(),
    )  # fmt: skip
    names = [[f.check for f in results_of(small, outcomes(GOOD, extent)).findings]
             for extent in (Extent.QUICK, Extent.NORMAL)]  # fmt: skip
    assert names == [["every-run-passes"], ["every-run-passes", "a-lower"]]


def finished(*findings: tuple[str, Status], folder: Path) -> Finished:
    (folder / "metrics.json").write_text("{}")
    each = tuple(
        Finding(check=name, claim="", status=status, evidence="") for name, status in findings
    )
    return Finished(folder, Verdict(verdict=Status.PASS, findings_verdict=Status.PASS,
                                    findings=each), {})  # fmt: skip


@pytest.mark.parametrize(
    ("status", "excused", "expected"),
    [
        (Status.PASS, (), Status.PASS),
        (Status.FAIL, (), Status.FAIL),
        (Status.FAIL, ("some-check",), Status.PASS),
        (Status.INVALID, ("some-check",), Status.INVALID),
    ],
)
def test_a_failure_may_be_excused_but_never_unfaithfulness(
    tmp_path: Path, status: Status, excused: tuple[str, ...], expected: Status
) -> None:
    variant = Variant("a", "pdd-hello", "", excused=excused)
    done = finished(("some-check", status), ("other", Status.PASS), folder=tmp_path)
    assert outcome_of(variant, 1, done).status is expected


@pytest.mark.parametrize(
    ("lost", "excused", "expected"),
    [(0, (), Status.PASS), (3, (), Status.FAIL), (3, ("requests-failed",), Status.PASS)],
)
def test_a_request_that_failed_fails_its_run_unless_excused(
    tmp_path: Path, lost: int, excused: tuple[str, ...], expected: Status
) -> None:
    done = finished(("some-check", Status.PASS), folder=tmp_path)
    (tmp_path / "metrics.json").write_text(json.dumps({"requests": {"failed": lost}}))
    run = outcome_of(Variant("a", "pdd-hello", "", excused=excused), 1, done)
    assert run.status is expected
    assert ("3 of the window's requests failed" in run.words) is (expected is Status.FAIL)
    row = run_rows(Outcomes(Extent.QUICK, {"a": (run,)}, {}))[0]
    assert row.failed == lost
    assert every_run_passes(Outcomes(Extent.QUICK, {"a": (run,)}, {})).status is expected


def test_every_variant_gets_its_seeds() -> None:
    def seeds(extent: Extent, asked: int | None) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for variant, seed, job in jobs(STUDY, extent, asked):
            assert job.label == f"{variant.label}-s{seed}"
            found.setdefault(variant.label, []).append(seed)
        return found

    assert seeds(Extent.NORMAL, None) == {"a": [1, 2, 3], "b": [1, 2, 3], "b-far": [1]}
    assert seeds(Extent.QUICK, 2) == {"a": [1, 2], "b": [1, 2], "b-far": [1]}


def test_overrides_may_depend_on_the_seed() -> None:
    variant = Variant("a", "s", "", ("x=1",), tuned=lambda seed: (f"y={seed}",))
    assert variant.overrides_of(7) == ("x=1", "y=7")


def test_two_variants_of_one_name_are_refused() -> None:
    twice = Study(
        name="example", title="", question="", measures=(), claims=(), assumptions=(),
        variants=lambda extent: (Variant("a", "s", ""), Variant("a", "s", "")),
    )  # fmt: skip
    with pytest.raises(UsageError, match="named twice: a"):
        jobs(twice, Extent.QUICK, None)


def test_page_and_files_hold_the_rows(tmp_path: Path) -> None:
    results = results_of(STUDY, outcomes(GOOD))
    write_results(tmp_path, results)
    text = results_page(results, (), tmp_path)
    for words in ("Is a lower?", "9.80 s", "x 2", "nothing", "a is lower."):
        assert words in text
    kept = json.loads((tmp_path / "example.json").read_text())
    assert kept["rows"][0]["by_seed"] == {"1": 1.0, "2": 3.0}
    with (tmp_path / "example.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["variant"] for row in rows] == ["a", "b", "b-far", "cut_share"]
    assert len(figure_tables(results)) == 2


def test_every_study_that_is_listed_plans_its_variants() -> None:
    for name in known():
        if name != "table2":
            study = study_of(name)
            assert study.name == name
            for extent in Extent:
                labels = [variant.label for variant in study.variants(extent)]
                assert len(set(labels)) == len(labels)
                for variant in study.variants(extent):
                    assert not variant.against or variant.against in labels


def test_an_unknown_study_is_refused_with_the_known_names() -> None:
    with pytest.raises(UsageError, match="table4"):
        study_of("table99")


def test_of_no_value_there_is_no_mean() -> None:
    assert estimate([]) is None
    with pytest.raises(AnalysisError, match="was not run"):
        outcomes({}).of("a", TTFT)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_an_interval_holds_its_mean(values: list[float]) -> None:
    known = estimate(values)
    assert known is not None
    assert known.low is not None
    assert known.high is not None
    assert known.low <= known.mean <= known.high
