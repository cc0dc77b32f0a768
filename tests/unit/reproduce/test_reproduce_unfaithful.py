"""An invalid run is listed and decides the status; none of its figures is read or shown."""

from __future__ import annotations

import json
from pathlib import Path

from testbed.checks.finding import Finding, Status
from testbed.checks.verdict import Verdict
from testbed.errors import AnalysisError
from testbed.report.table import Table
from testbed.reproduce.extent import Extent
from testbed.reproduce.outcome import Outcomes
from testbed.reproduce.perform import outcomes_of
from testbed.reproduce.reduce import results_of, shown
from testbed.reproduce.study import Judged, Measure, Study, Variant
from testbed.run.execute import Finished

OWN = Variant("a", "pdd-hello", "")
TTFT = "ttft.p90_s"


def study_of(*measures: Measure) -> Study:
    return Study(
        name="example", title="", question="", variants=lambda extent: (OWN,), measures=measures,
        claims=(), assumptions=(),
    )  # fmt: skip


def finished(folder: Path, status: Status, value: float) -> Finished:
    folder.mkdir()
    (folder / "metrics.json").write_text(json.dumps({"ttft": {"p90_s": value}}))
    finding = Finding(check="links-faithful", claim="", status=status, evidence="")
    verdict = Verdict(verdict=status, findings_verdict=status, findings=(finding,))
    return Finished(folder, verdict, {})


def two_runs(root: Path, second: Status, study: Study) -> Outcomes:
    runs = [
        (OWN, 1, finished(root / "1", Status.PASS, 2.0)),
        (OWN, 2, finished(root / "2", second, 100.0)),
    ]
    return outcomes_of(study, Extent.QUICK, runs)


def test_an_invalid_run_is_never_averaged(tmp_path: Path) -> None:
    study = study_of(Measure(TTFT, "TTFT, P90"))
    found = two_runs(tmp_path, Status.INVALID, study)
    assert found.of("a", TTFT) == {1: 2.0}
    assert [run.seed for run in found.faithful("a")] == [1]
    results = results_of(study, found)
    assert (results.rows[0].n, results.rows[0].mean, results.rows[0].low) == (1, 2.0, None)
    assert results.status is Status.INVALID
    assert [run.status for run in results.runs] == [Status.PASS, Status.INVALID]


def test_a_faithful_run_that_fails_a_check_counts(tmp_path: Path) -> None:
    study = study_of(Measure(TTFT, "TTFT, P90"))
    found = two_runs(tmp_path, Status.FAIL, study)
    assert found.mean("a", TTFT) == 51.0
    assert results_of(study, found).status is Status.FAIL


def test_the_events_of_an_invalid_run_are_not_read(tmp_path: Path) -> None:
    read: list[int] = []
    study = study_of(Measure("own_s", "own", lambda run: read.append(run.seed) or 1.0))
    two_runs(tmp_path, Status.INVALID, study)
    assert read == [1]


def test_what_cannot_be_shown_is_said_and_takes_nothing_with_it() -> None:
    def table(outcomes: Outcomes) -> tuple[Table, ...]:
        raise AnalysisError("read a figure", "ttft of a", "no faithful run has it")

    nothing = Outcomes(Extent.QUICK, {}, {})
    assert shown("tables", table, nothing) == (
        (), ("No tables: ttft of a: no faithful run has it.",),
    )  # fmt: skip
    study = Study(
        name="example", title="", question="", variants=lambda extent: (), measures=(),
        claims=(), assumptions=(), tables=table,
    )  # fmt: skip
    results = results_of(study, nothing, ("No charts: x.",))
    assert results.notes == ("No tables: ttft of a: no faithful run has it.", "No charts: x.")
    assert Judged("").against == ()
