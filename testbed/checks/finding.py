"""What one check found: a status, the figures behind it, and what broke the claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from testbed.contract.record import Record

SHOWN_MAX = 20
"""Violations written out per finding; the rest are only counted, so that a run that
breaks everywhere still has a verdict file that a person can read."""


class Status(StrEnum):
    """The three answers, from best to worst."""

    PASS = "pass"
    FAIL = "fail"
    INVALID = "invalid"


_SEVERITY = {Status.PASS: 0, Status.FAIL: 1, Status.INVALID: 2}


def worst(statuses: Iterable[Status]) -> Status:
    """Return the worst of them. No answer at all is invalid: nothing was looked at."""
    return max(statuses, key=_SEVERITY.__getitem__, default=Status.INVALID)


class Finding(Record):
    """One check's answer.

    Attributes:
        check: name of the check; ``expect: violations`` refers to it.
        claim: what must hold, as a plain sentence.
        status: pass, fail (the system broke the claim) or invalid (the run cannot tell).
        evidence: the figures the status rests on, as a sentence.
        violations: the first breaches, each naming its object.
        violation_count: all of them.
        decides: False for informational findings, which never change the verdict.
    """

    check: str
    claim: str
    status: Status
    evidence: str
    violations: tuple[str, ...] = ()
    violation_count: int = 0
    decides: bool = True


def found(
    check: str,
    claim: str,
    evidence: str,
    violations: Sequence[str],
    broken: Status = Status.FAIL,
    decides: bool = True,
) -> Finding:
    """Build a finding that passes without violations and is ``broken`` with any."""
    return Finding(
        check=check,
        claim=claim,
        status=broken if violations else Status.PASS,
        evidence=evidence,
        violations=tuple(violations[:SHOWN_MAX]),
        violation_count=len(violations),
        decides=decides,
    )
