"""What a run came to: failed requests are legal, everything else is a finding that has a name."""

from __future__ import annotations

import pytest

from testbed.checks.endings import Endings
from testbed.checks.finding import Finding, Status, found
from testbed.checks.verdict import conclude
from testbed.errors import AgentError, LabError, PlanError
from testbed.soak.outcome import Came, leaf_of, of_error, of_verdict, pattern_of, refused

pytestmark = pytest.mark.unit
SOUND = found("record-complete", "c", "all there", ())
LOG = """Traceback (most recent call last):
  + Exception Group Traceback (most recent call last):
  |   File "/usr/lib/python3.11/asyncio/runners.py", line 190, in run
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/mnt/src/testbed_agents/decode/server.py", line 120, in _take
    |   File "/mnt/src/testbed_agents/cache/index.py", line 77, in publish
    |   File "/usr/lib/python3.11/json/decoder.py", line 1, in decode
    | KeyError: 'b12'
"""


def failing(check: str, *violations: str, status: Status = Status.FAIL) -> Finding:
    return found(check, "c", "e", violations, status)


def endings(failed: int) -> Endings:
    return Endings(asked=12, failed=failed, reasons={"deadline": failed} if failed else {})


@pytest.mark.parametrize("failed", [0, 5])
def test_failed_requests_with_reasons_are_no_finding(failed: int) -> None:
    outcome = of_verdict(conclude([SOUND], None, endings(failed)), "abc", 9.04)
    assert not outcome.is_finding
    assert (outcome.failed, outcome.timeline, outcome.wall_s) == (failed, "abc", 9.0)


NOBODY = failing("answered-once", "no request at all was answered")


def test_that_nobody_was_answered_is_legal_where_each_was_told_why() -> None:
    assert not of_verdict(conclude([SOUND, NOBODY], None, endings(12)), None, 1).is_finding
    assert of_verdict(conclude([SOUND, NOBODY], None, endings(11)), None, 1).is_finding
    silent = failing("answered-once", "request 3 was neither answered nor reported failed", "x")
    assert of_verdict(conclude([silent], None, endings(12)), None, 1).is_finding


def test_an_invalid_run_is_named_by_what_made_it_invalid() -> None:
    findings = [
        failing("tokens-ordered", "b"),
        failing("littles-law", "a 1", status=Status.INVALID),
    ]
    outcome = of_verdict(conclude(findings, None, endings(0)), None, 1)
    assert outcome.came is Came.INVALID
    assert outcome.label == "invalid: littles-law: a #"
    assert outcome.broken == ("littles-law", "tokens-ordered")


def test_equal_findings_are_equal_whatever_their_numbers() -> None:
    one = of_verdict(conclude([failing("x", "request 7 on md1, 3.5 ms")], None), None, 1)
    two = of_verdict(conclude([failing("x", "request 12 on md2, 1,300 ms")], None), None, 2)
    other = of_verdict(conclude([failing("x", "something else")], None), None, 2)
    assert one.same_as(two)
    assert not one.same_as(other)
    passed = of_verdict(conclude([SOUND], None), None, 1)
    assert not passed.same_as(passed)


def test_an_agent_that_died_is_named_by_where_it_raised() -> None:
    error = AgentError("run an agent", "md1", "it ended with status 1 before it was told to")
    outcome = of_error(error, LOG, 3)
    assert outcome.came is Came.INVALID
    assert outcome.label == "invalid: AgentError: KeyError in cache/index.py: publish"
    assert "md1" in outcome.words
    assert leaf_of("nothing of the kind") == ""


def test_other_errors_are_named_by_their_words() -> None:
    outcome = of_error(LabError("end the run", "soak-1-7", "a client outlived its deadline"), "", 3)
    assert outcome.pattern == "end the run: a client outlived its deadline"
    refusal = refused(PlanError("plan a fault", "f.yaml:9", "md1 is still under slow-3"))
    assert refusal.came is Came.REFUSED
    assert refusal.pattern == "md# is still under slow-#"


def test_patterns_have_no_numbers() -> None:
    assert pattern_of("p1 sent 1,234 bytes in 0.5 s") == "p# sent # bytes in # s"
