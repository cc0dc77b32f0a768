"""An analysis that fails leaves no trace of an earlier one that passed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.checks import Bound, Expectation, Status, judge, read_verdict
from testbed.errors import AnalysisError, ExitStatus, UsageError
from testbed.metrics.compute import compute
from testbed.report import write_report
from testbed.run.execute import analyse
from testbed.scenario import load_scenario
from tests.fakes.fake_run import FakeRun
from tests.fakes.run_folder import write_run_folder

SMALL = FakeRun(rate=20, warm_up_s=1, measure_s=3, drain_s=30, pool=4, load=1.1)


@pytest.fixture
def passed(tmp_path: Path) -> Path:
    run = write_run_folder(tmp_path / "run", SMALL)
    compute(run, 1.0, 1.0)
    assert judge(run).verdict is Status.PASS
    write_report(run)
    return run


def without(kind: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        path = run / "events" / "p1.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if f'"{kind}"' not in line))

    return change


def garbled(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def break_it(run: Path) -> None:
        (run / name).write_bytes(change((run / name).read_bytes()))

    return break_it


def missing(name: str) -> Callable[[Path], None]:
    return lambda run: (run / name).unlink()


BREAKS: dict[str, Callable[[Path], None]] = {
    "truncated events": garbled("events/p1.jsonl", lambda text: text[:-20]),
    "garbage bytes": garbled("events/c1.jsonl", lambda text: text + b"\xff\xfe\n"),
    "garbage line": garbled("events/lab.jsonl", lambda text: b"what?\n" + text),
    "unknown kind": garbled(
        "events/md1.jsonl", lambda text: text.replace(b'"kv.begin"', b'"kv.gone"')
    ),
    "missing plan": missing("plan.json"),
    "garbled plan": garbled("plan.json", lambda text: b"{}"),
    "half a plan": garbled("plan.json", lambda text: text[:100]),
    "missing workload": missing("workload.jsonl"),
    "garbled workload": garbled("workload.jsonl", lambda text: b"\xff{}\n" + text),
    "another workload": garbled("workload.jsonl", lambda text: text.splitlines()[0]),
    "never acquired": without("pool.acquired"),
    "never queued": without("pool.queued"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_failed_analysis_leaves_an_invalid_verdict_and_no_report(passed: Path, name: str) -> None:
    BREAKS[name](passed)
    with pytest.raises(AnalysisError, match="remedy: ") as caught:
        analyse(passed, load_scenario("hello"))
    assert caught.value.exit_status is ExitStatus.INVALID
    verdict = read_verdict(passed / "verdict.json")
    assert verdict.verdict is verdict.findings_verdict is Status.INVALID
    assert verdict.findings[0].evidence == str(caught.value)
    for stale in ("report.html", "metrics.json", "oracle.jsonl"):
        assert not (passed / stale).exists(), stale


def test_a_fault_of_the_analysis_itself_counts_as_well(passed: Path) -> None:
    (passed / "metrics.json").unlink()
    (passed / "metrics.json").mkdir()  # no reader expects a folder there
    with pytest.raises(AnalysisError, match="remedy: "):
        analyse(passed, load_scenario("hello"))
    assert read_verdict(passed / "verdict.json").verdict is Status.INVALID
    assert not (passed / "report.html").exists()


def test_nothing_is_written_into_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run folder"):
        analyse(tmp_path, load_scenario("hello"))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="no such folder"):
        analyse(tmp_path / "nosuch", load_scenario("hello"))


def test_the_page_of_an_unmet_expectation_says_fail(passed: Path) -> None:
    bound = Bound(metric="requests.completed", relation="<", limit=0)
    judge(passed, Expectation(bounds=(bound,)))
    page = write_report(passed).read_text()
    assert '<section class="verdict fail"' in page
    assert "Verdict: fail" in page
    assert "expectation failed: requests.completed &lt; 0" in page
    assert "the checks alone say: pass" in page


def test_the_page_of_a_met_expectation_says_pass_and_what_the_checks_said(passed: Path) -> None:
    (passed / "fidelity.json").unlink()
    judge(passed, Expectation(verdict=Status.INVALID))
    page = write_report(passed).read_text()
    assert '<section class="verdict pass"' in page
    assert "the checks alone say: invalid" in page


def test_a_remark_is_counted_on_the_page(passed: Path) -> None:
    path = passed / "events" / "lab.jsonl"
    path.write_text(path.read_text().replace('"drops":0', '"drops":3', 1))
    assert judge(passed).verdict is Status.PASS
    page = write_report(passed).read_text()
    assert "checks pass; 1 remark." in page
    assert '<span class="chip">remark</span>' in page
