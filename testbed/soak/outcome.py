"""What came of one schedule: whether it is a finding, and which two are the same one. Pure."""

from __future__ import annotations

import re
from enum import StrEnum

from pydantic import Field

from testbed.checks.finding import Finding, Status
from testbed.checks.verdict import Verdict
from testbed.contract.record import Record
from testbed.errors import TestbedError

_ANSWERED = "answered-once"
_LEAF = re.compile(r'  File "[^"]*?/(?P<file>[\w.-]+/[\w.-]+\.py)", line \d+, in (?P<function>\S+)')
_OURS = ("testbed_agents/", "testbed/")
_RAISED = re.compile(
    r"^\s*(?:\|\s*)*(?P<error>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)): ?.*$"
)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_LONGEST = 300


class Came(StrEnum):
    """What a run came to."""

    PASS = "pass"
    FAIL = "fail"
    INVALID = "invalid"
    REFUSED = "refused"
    """The planner took no part of it: the generator is wrong."""


class Outcome(Record):
    """One run, judged.

    Attributes:
        came: pass, or what kind of finding it is.
        check: the first check that broke, or the class of the error that ended the run.
        pattern: what it said, without numbers: equal for the same finding in another run.
        words: what it said.
        broken: all checks that broke.
        timeline: SHA-256 of the run's events; None where it has none.
        asked, failed: requests.
        reasons: why requests failed, and how many.
        wall_s: seconds of the whole run.
    """

    came: Came
    check: str = ""
    pattern: str = ""
    words: str = ""
    broken: tuple[str, ...] = ()
    timeline: str | None = None
    asked: int = 0
    failed: int = 0
    reasons: dict[str, int] = Field(default_factory=dict)
    wall_s: float = 0.0

    @property
    def is_finding(self) -> bool:
        """Whether somebody has to look at it."""
        return self.came is not Came.PASS

    @property
    def label(self) -> str:
        """Names the finding; equal for the same one in another run."""
        return f"{self.came.value}: {self.check}: {self.pattern}"

    def same_as(self, other: Outcome) -> bool:
        """Whether both are one finding."""
        return self.is_finding and self.label == other.label


def of_verdict(verdict: Verdict, timeline: str | None, wall_s: float) -> Outcome:
    """A run that was judged. Failed requests that are reported with a reason are legal."""
    requests = verdict.requests
    asked, failed = (0, 0) if requests is None else (requests.asked, requests.failed)
    broken = [
        one
        for one in verdict.findings
        if one.decides and one.status is not Status.PASS and not _all_refused(one, asked, failed)
    ]
    worst = sorted(broken, key=lambda one: one.status is not Status.INVALID)
    words = _first_words(worst[0]) if worst else ""
    return Outcome(
        came=Came(worst[0].status.value) if worst else Came.PASS,
        check=worst[0].check if worst else "",
        pattern=pattern_of(words),
        words=words,
        broken=tuple(one.check for one in worst),
        timeline=timeline,
        asked=asked,
        failed=failed,
        reasons={} if requests is None else requests.reasons,
        wall_s=round(wall_s, 1),
    )


def of_error(error: TestbedError, log: str, wall_s: float) -> Outcome:
    """A run that an error ended.

    Args:
        log: of the agent that it names, or empty: its last traceback says where it died.
    """
    leaf = leaf_of(log)
    cause = error.cause.splitlines()[0] if error.cause else ""
    words = f"{error.attempt}: {error.subject}: {cause}"
    return Outcome(
        came=Came.INVALID,
        check=type(error).__name__,
        pattern=leaf or pattern_of(f"{error.attempt}: {cause}"),
        words=f"{words} ({leaf})"[:_LONGEST] if leaf else words[:_LONGEST],
        wall_s=round(wall_s, 1),
    )


def refused(error: TestbedError) -> Outcome:
    """A schedule that the planner did not take."""
    words = f"{error.subject}: {error.cause}"[:_LONGEST]
    return Outcome(
        came=Came.REFUSED, check=type(error).__name__, pattern=pattern_of(error.cause), words=words
    )


def pattern_of(words: str) -> str:
    """Words without their numbers, so that two runs can be compared."""
    return _NUMBER.sub("#", words)[:_LONGEST]


def leaf_of(log: str) -> str:
    """``Error in room/file.py: function`` of the last traceback of a log, at the deepest of our own
    frames; empty where there is none."""
    raised = [found for line in log.splitlines() if (found := _RAISED.match(line))]
    named = [one["error"] for one in raised if not one["error"].endswith("ExceptionGroup")]
    frames = [
        found
        for line in log.splitlines()
        if any(place in line for place in _OURS) and (found := _LEAF.search(line))
    ]
    if not named or not frames:
        return ""
    return f"{named[-1]} in {frames[-1]['file']}: {frames[-1]['function']}"


def _all_refused(finding: Finding, asked: int, failed: int) -> bool:
    """Nobody was answered, and each was told why: what a fault may well do to a small system."""
    return (
        finding.check == _ANSWERED
        and finding.violation_count == 1
        and finding.status is Status.FAIL
        and 0 < asked == failed
    )


def _first_words(finding: Finding) -> str:
    return (finding.violations[0] if finding.violations else finding.evidence)[:_LONGEST]
