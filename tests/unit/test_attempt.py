"""Attempts: jobs of their own, whose events bear their request's id."""

from __future__ import annotations

import io
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from testbed.checks.line import Line, job_of
from testbed.contract.attempt import attempt_id, number_of, request_of
from testbed.contract.event import EventLog, Kind
from testbed_agents.client.worth import ATTEMPTS, worth_another
from tests.fakes.jump_loop import JumpClock

REQUESTS = st.integers(0, 2**32 - 1)
NUMBERS = st.integers(0, 1000)


def written(**fields: int | str) -> dict[str, object]:
    stream = io.StringIO()
    log = EventLog(stream, "p1", JumpClock())
    log.emit(Kind.PREFILL_END, at_ns=5, **fields)
    log.flush()
    line: dict[str, object] = json.loads(stream.getvalue())
    return line


@given(asked=REQUESTS, number=NUMBERS)
def test_a_job_names_its_request_and_its_attempt(asked: int, number: int) -> None:
    job = attempt_id(asked, number)
    assert (request_of(job), number_of(job)) == (asked, number)


@given(asked=REQUESTS, number=NUMBERS)
def test_a_job_is_read_back_from_its_event(asked: int, number: int) -> None:
    job = attempt_id(asked, number)
    line = written(req=job)
    assert line["req"] == asked
    assert ("attempt" in line) == (number > 0)
    assert job_of(Line(Path("x"), 1, line)) == job


def test_events_without_a_request_are_left_as_they_are() -> None:
    assert "attempt" not in written(peer="md1")
    assert "attempt" not in written(req=-1)


def test_attempts_are_bounded_and_made_where_they_may_help() -> None:
    assert worth_another("prefill-lost", 0)
    assert not worth_another("prefill-lost", ATTEMPTS - 1)
    assert not worth_another("diverged at position 3", 0)
    assert not worth_another("queue-full", 0)
