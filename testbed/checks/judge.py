"""The judge: runs every check, keeps the worst answer, writes ``verdict.json``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from testbed.checks.agents_stopped import AgentsStopped
from testbed.checks.answered_once import AnsweredOnce
from testbed.checks.authority_single import AuthoritySingle
from testbed.checks.barrier_passed import BarrierPassed
from testbed.checks.bytes_conserved import BytesConserved
from testbed.checks.cache_conserved import CacheConserved
from testbed.checks.cancel_heard import CancelHeard
from testbed.checks.case import Case, read_case
from testbed.checks.check import Check
from testbed.checks.deadline_kept import DeadlineKept
from testbed.checks.drops_explained import DropsExplained
from testbed.checks.endings import endings
from testbed.checks.expectation import Expectation, compare
from testbed.checks.faults_kept import FaultsKept
from testbed.checks.finding import Finding, Status
from testbed.checks.gone_noticed import GoneNoticed
from testbed.checks.ids_told import IdsTold
from testbed.checks.links_faithful import LinksFaithful
from testbed.checks.littles_law import LittlesLaw
from testbed.checks.memory_kept import MemoryKept
from testbed.checks.on_time import OnTime
from testbed.checks.pages_owned import PagesOwned
from testbed.checks.payload_sampled import PayloadSampled
from testbed.checks.pool_kept import PoolBounded, PoolFair
from testbed.checks.queues_bounded import QueuesBounded
from testbed.checks.record_complete import RecordComplete
from testbed.checks.retries_bounded import RetriesBounded
from testbed.checks.route_kept import RouteKept
from testbed.checks.time_ordered import TimeOrdered
from testbed.checks.tokens_equal import TokensEqual
from testbed.checks.tokens_ordered import TokensOrdered
from testbed.checks.transfers_verified import TransfersVerified
from testbed.checks.verdict import Verdict, conclude, write_verdict
from testbed.checks.waits_bounded import WaitsBounded
from testbed.contract.defect import Defect
from testbed.errors import TestbedError

CHECKS: tuple[Check, ...] = (
    RecordComplete(),
    TimeOrdered(),
    AgentsStopped(),
    BarrierPassed(),
    OnTime(),
    LinksFaithful(),
    FaultsKept(),
    PayloadSampled(),
    TokensEqual(),
    TokensOrdered(),
    AnsweredOnce(),
    RouteKept(),
    AuthoritySingle(),
    CacheConserved(),
    MemoryKept(),
    IdsTold(),
    TransfersVerified(),
    BytesConserved(),
    PagesOwned(),
    WaitsBounded(),
    RetriesBounded(),
    PoolBounded(),
    PoolFair(),
    DeadlineKept(),
    QueuesBounded(),
    GoneNoticed(),
    CancelHeard(),
    LittlesLaw(),
    DropsExplained(),
)
"""Every check, in the order of the report: first whether the run can be trusted."""

READABLE = "record-readable"
"""Name of the finding that stands for a record that cannot be read at all."""


def examine(case: Case, checks: Sequence[Check] = CHECKS) -> tuple[Finding, ...]:
    """Let every check look at the case; a crash inside one is invalid with its cause."""
    return tuple(_examine(case, check) for check in checks)


def judge(
    folder: Path, expectation: Expectation | None = None, checks: Sequence[Check] = CHECKS
) -> Verdict:
    """Judge a run folder and write its ``verdict.json``.

    A record that cannot be read is invalid, with the file and the line as evidence.
    """
    metrics = requests = None
    off: tuple[Defect, ...] = ()
    try:
        case = read_case(folder)
    except Exception as error:  # whatever an edited file makes of a reader
        findings: tuple[Finding, ...] = (_crashed(READABLE, "The record can be read.", error),)
    else:
        findings = examine(case, checks)
        metrics, requests, off = case.metrics, endings(case), case.plan.defects
    held = None if expectation is None else compare(expectation, findings, metrics)
    verdict = conclude(findings, held, requests, off)
    write_verdict(folder, verdict)
    return verdict


def spoil(folder: Path, check: str, claim: str, error: BaseException) -> Verdict:
    """Write an invalid verdict for a run that cannot be judged, and remove what it outdates.

    Figures and report of an earlier analysis would contradict it, so ``metrics.json``,
    ``oracle.jsonl`` and ``report.html`` go; all of them are made from the record.
    """
    cause = str(error) or type(error).__name__
    finding = Finding(
        check=check,
        claim=claim,
        status=Status.INVALID,
        evidence=cause,
        violations=(cause,),
        violation_count=1,
    )
    verdict = conclude((finding,), None)
    write_verdict(folder, verdict)
    for name in ("report.html", "metrics.json", "oracle.jsonl"):
        path = folder / name
        if path.is_file() or path.is_symlink():
            path.unlink()
    return verdict


def _examine(case: Case, check: Check) -> Finding:
    try:
        return check.examine(case)
    except Exception as error:  # a check must never take the other findings with it
        return _crashed(check.name, check.claim, error)


def _crashed(name: str, claim: str, error: Exception) -> Finding:
    cause = error.cause if isinstance(error, TestbedError) else f"{type(error).__name__}: {error}"
    subject = f"{error.subject}: " if isinstance(error, TestbedError) else "it crashed: "
    return Finding(
        check=name,
        claim=claim,
        status=Status.INVALID,
        evidence=f"{subject}{cause}",
        violations=(str(error),),
        violation_count=1,
    )
