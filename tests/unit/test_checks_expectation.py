"""With an expectation, pass means that it held; an invalid run is never hidden by one."""

from __future__ import annotations

import pytest

from testbed.checks import Bound, Expectation, Finding, Status, Verdict, conclude
from testbed.checks.expectation import Relation, compare
from testbed.checks.metrics_file import MetricsFile
from testbed.errors import AnalysisError, ExitStatus
from tests.fakes.metrics import metrics_of


def finding(name: str, status: Status, decides: bool = True) -> Finding:
    return Finding(check=name, claim="It holds.", status=status, evidence="seen", decides=decides)


def verdict(status: Status, expected: Expectation, metrics: MetricsFile | None = None) -> Verdict:
    findings = (finding("tokens", status), finding("pool", Status.PASS))
    return conclude(findings, compare(expected, findings, metrics))


def test_a_provoked_failure_passes_when_the_named_check_notices() -> None:
    expected = Expectation(verdict=Status.FAIL, violations=("tokens",))
    assert verdict(Status.FAIL, expected).exit_status is ExitStatus.PASS


def test_a_provoked_failure_that_goes_unnoticed_fails() -> None:
    expected = Expectation(verdict=Status.FAIL, violations=("tokens",))
    result = verdict(Status.PASS, expected)
    assert result.exit_status is ExitStatus.FAIL
    assert "tokens was expected to find violations but passed" in result.in_words()


def test_another_check_that_fails_breaks_the_expectation() -> None:
    expected = Expectation(verdict=Status.FAIL, violations=("pool",))
    result = verdict(Status.FAIL, expected)
    assert result.exit_status is ExitStatus.FAIL
    assert "tokens found violations that were not expected" in result.in_words()


def test_an_unknown_check_is_named_with_those_that_exist() -> None:
    expected = Expectation(verdict=Status.PASS, violations=("tokenz",))
    result = verdict(Status.PASS, expected).expectation
    assert result is not None
    assert "no check 'tokenz'; known: pool, tokens" in result.against[0]


def test_an_unexpected_invalid_run_stays_invalid() -> None:
    expected = Expectation(verdict=Status.FAIL, violations=("tokens",))
    assert verdict(Status.INVALID, expected).exit_status is ExitStatus.INVALID


def test_an_expected_invalid_run_passes() -> None:
    assert verdict(Status.INVALID, Expectation(verdict=Status.INVALID)).exit_status == 0


@pytest.mark.parametrize("expected", list(Status))
@pytest.mark.parametrize("found", list(Status))
def test_the_verdict_says_what_the_exit_status_says(found: Status, expected: Status) -> None:
    result = verdict(found, Expectation(verdict=expected))
    if found is expected:
        assert result.verdict is Status.PASS
    else:
        assert result.verdict is (Status.INVALID if found is Status.INVALID else Status.FAIL)
    assert result.findings_verdict is found
    assert result.exit_status == {"pass": 0, "fail": 1, "invalid": 3}[result.verdict]


def test_a_broken_bound_is_a_fail_in_words() -> None:
    bound = Bound(metric="transfer.p99_s", relation="<", limit=1)
    metrics = metrics_of({"transfer": {"p99_s": 2.0}})
    result = verdict(Status.PASS, Expectation(bounds=(bound,)), metrics)
    assert result.verdict is Status.FAIL
    assert result.in_words() == (
        "The scenario's expectation failed: transfer.p99_s < 1: it is 2. All 2 checks pass."
    )


@pytest.mark.parametrize(
    ("relation", "limit", "holds"),
    [
        ("<", 2.0, False),
        ("<=", 2.0, True),
        ("==", 2.0, True),
        (">=", 2.0, True),
        (">", 2.0, False),
        ("<", 2.1, True),
        (">", 1.9, True),
        ("==", 1.0, False),
    ],
)
def test_bounds_on_metrics(relation: Relation, limit: float, holds: bool) -> None:
    bound = Bound(metric="transfer.p99_s", relation=relation, limit=limit)
    metrics = metrics_of({"transfer": {"p99_s": 2.0}})
    result = verdict(Status.PASS, Expectation(bounds=(bound,)), metrics)
    assert (result.exit_status is ExitStatus.PASS) is holds


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        ({"transfer": {"p99_s": None}}, "null"),
        ({"transfer": {"p50_s": 1}}, "has only"),
        ({"transfer": {"p99_s": "fast"}}, "not a number"),
        ({"transfer": {"p99_s": True}}, "not a number"),
    ],
)
def test_a_bound_on_a_missing_metric_does_not_hold(tree: dict[str, object], reason: str) -> None:
    bound = Bound(metric="transfer.p99_s", relation="<", limit=9)
    result = compare(Expectation(bounds=(bound,)), (finding("a", Status.PASS),), metrics_of(tree))
    assert not result.held
    assert reason in result.against[0]


def test_a_bound_without_any_metrics_does_not_hold() -> None:
    bound = Bound(metric="transfer.p99_s", relation="<", limit=9)
    result = compare(Expectation(bounds=(bound,)), (finding("a", Status.PASS),), None)
    assert result.against == ("transfer.p99_s < 9: there is no metrics.json",)


def test_informational_findings_do_not_break_an_expectation() -> None:
    findings = (
        finding("a", Status.FAIL),
        finding("b", Status.PASS),
        finding("drops", Status.FAIL, decides=False),
    )
    expected = Expectation(verdict=Status.FAIL, violations=("a",))
    assert compare(expected, findings, None).held


def test_metric_names_are_looked_up_by_dots() -> None:
    metrics = metrics_of({"pool": {"size": 4}, "offered_load": 1.04, "link": {}})
    assert metrics.required("pool.size") == 4
    assert "offered_load" in metrics
    assert "pool.depth" not in metrics
    with pytest.raises(AnalysisError, match=r"pool\.depth"):
        metrics.number("pool.depth")
