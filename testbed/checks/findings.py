"""The two findings of the paper's pool study, stated as ratios between the two runs.

Source: the paper's discussion of its Table 2. (a) A narrow, even distribution of hit
rates exhausts the connection pool where a wide, skewed one does not, at the same load.
(b) The slow tail of the wide distribution belongs to its requests with low hit rates.
No published absolute number is a threshold: line, pool size and run length behind them
are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testbed.checks.case import Case
from testbed.checks.finding import Finding, Status, found, worst
from testbed.checks.metrics_file import MetricsFile
from testbed.contract.event import Kind
from testbed.errors import AnalysisError

LOAD_TOLERANCE = 0.01
"""Offered loads that differ by more than this share are not "the same load"."""
EXHAUSTED_LEAST = 0.05
"""Narrow counts as exhausted when no connection is free, and someone waits, for at
least this share of the window (mean over seeds) …"""
EXHAUSTED_RATIO = 3.0
"""… and for at least this many times wide's share. Under ideal sharing at load 1.04 the
ratio of single seeds lies between 5 and infinity, while two seeds of narrow differ by 1.6."""
WAIT_RATIO = 3.0
"""Narrow's mean wait for a connection is at least this many times wide's; under ideal
sharing 12 or more, while two seeds of narrow differ by 2.4."""
LOW_HIT_PERCENTILE = 20.0
TAIL_PERCENTILE = 99.0
TAIL_SHARE = 0.9
"""Share of the slowest 1 % that must lie below the 20th percentile of hit rates: 4.5 x
of what would fall there by chance."""


@dataclass(frozen=True, slots=True)
class Transferred:
    """One acknowledged transfer: hit share of its request (0..1), seconds, bytes."""

    req: int
    hit_share: float
    wait_s: float
    duration_s: float
    size: int


def transferred(case: Case) -> tuple[Transferred, ...]:
    """Return the transfers of requests that arrived within the measuring window."""
    begin, end = case.window.begin_ns, case.window.end_ns
    waits = {step.req: step.wait_ns for step in case.history.of(Kind.POOL_ACQUIRED)}
    rows: list[Transferred] = []
    for step in case.history.of(Kind.TRANSFER_ACKED):
        request, story = case.requests.get(step.req), case.history.stories.get(step.req)
        if request is None or story is None or not story.sent_ns:
            continue
        if begin <= story.sent_ns[0] < end:
            rows.append(
                Transferred(
                    req=step.req,
                    hit_share=request.hit_tokens / request.input_tokens,
                    wait_s=waits.get(step.req, 0) / 1e9,
                    duration_s=step.duration_ns / 1e9,
                    size=step.size,
                )
            )
    return tuple(rows)


def narrow_exhausts(wide: Sequence[MetricsFile], narrow: Sequence[MetricsFile]) -> Finding:
    """Finding (a): narrow exhausts the pool where wide does not, at the same load.

    Judged on means over seeds: backlog at a load near 1 depends on when the few large
    requests of a seed happen to arrive.

    Raises:
        AnalysisError: a metric is missing, or the offered loads differ.
    """
    loads = [run.required("offered_load") for run in (*wide, *narrow)]
    if max(loads) - min(loads) > LOAD_TOLERANCE * max(loads):
        raise AnalysisError(
            "compare pools",
            "wide and narrow",
            f"offered loads lie between {min(loads):.4f} and {max(loads):.4f}",
            "give both scenarios the same offered_load",
        )
    share_w, share_n = _mean(wide, _EXHAUSTED), _mean(narrow, _EXHAUSTED)
    wait_w, wait_n = _mean(wide, _WAIT), _mean(narrow, _WAIT)
    used_w, used_n = _mean(wide, _USED), _mean(narrow, _USED)
    against: list[str] = []
    if share_n < EXHAUSTED_LEAST:
        against.append(f"narrow is exhausted for {share_n:.1%} of the window only")
    if share_n < EXHAUSTED_RATIO * share_w:
        against.append(f"wide is exhausted as well, for {share_w:.1%} of the window")
    if wait_n < WAIT_RATIO * wait_w or wait_n == 0:
        against.append(f"mean waits of {wait_n:.3f} s and {wait_w:.3f} s are too alike")
    if used_n <= used_w:
        against.append("narrow does not use more of the pool than wide")
    evidence = (
        f"at offered load {sum(loads) / len(loads):.3f}, mean of n = {len(narrow)}: pool exhausted "
        f"for {share_n:.1%} of the window (narrow{_range(narrow, _EXHAUSTED)}) against "
        f"{share_w:.1%} (wide{_range(wide, _EXHAUSTED)}), utilization {used_n:.0%} against "
        f"{used_w:.0%}, mean wait {wait_n * 1e3:.0f} ms against {wait_w * 1e3:.0f} ms"
    )
    claim = "Narrow exhausts the connection pool where wide does not, at the same load."
    return found("narrow-exhausts-pool", claim, evidence, against)


_EXHAUSTED = "pool.exhausted_fraction"
_WAIT = "pool.queue_wait_mean_s"
_USED = "pool.utilization"


def _mean(runs: Sequence[MetricsFile], metric: str) -> float:
    values = [run.required(metric) for run in runs]
    if not values:
        raise AnalysisError(
            "compare pools", metric, "there is no run to compare", "give one run at least"
        )
    return sum(values) / len(values)


def _range(runs: Sequence[MetricsFile], metric: str) -> str:
    values = [run.required(metric) for run in runs]
    return f"; {min(values):.1%} to {max(values):.1%}" if len(values) > 1 else ""


def tail_is_low_hit(wide: Sequence[Transferred]) -> Finding:
    """Finding (b): of wide's slowest 1 %, nearly all have a hit rate in the lowest fifth."""
    name = "wide-tail-is-low-hit"
    claim = "The slow tail of wide belongs to requests with low hit rates."
    if len(wide) < 100:
        evidence = f"{len(wide)} transfers have no slowest 1 %"
        return found(name, claim, evidence, [evidence], Status.INVALID)
    hits = np.array([row.hit_share for row in wide])
    durations = np.array([row.duration_s for row in wide])
    low = float(np.percentile(hits, LOW_HIT_PERCENTILE))
    slow = float(np.percentile(durations, TAIL_PERCENTILE))
    tail = hits[durations >= slow]
    share = float(np.mean(tail < low))
    evidence = (
        f"{share:.0%} of the {len(tail)} transfers slower than P99 ({slow:.2f} s) have a hit rate "
        f"below {low:.1%} (the lowest fifth); the highest hit rate among them is {tail.max():.1%}"
    )
    against = [] if share >= TAIL_SHARE else [f"{share:.0%} is less than {TAIL_SHARE:.0%}"]
    return found(name, claim, evidence, against)


def over_seeds(findings: Sequence[tuple[int, Finding]]) -> Finding:
    """Join one finding over several seeds: it holds when it holds for each of them.

    Raises:
        AnalysisError: there is no seed at all.
    """
    if not findings:
        raise AnalysisError(
            "join findings", "no seed", "there is nothing to join", "give one seed at least"
        )
    first = findings[0][1]
    violations = [
        f"seed {seed}: {text}" for seed, finding in findings for text in finding.violations
    ]
    return Finding(
        check=first.check,
        claim=first.claim,
        status=worst(finding.status for _, finding in findings),
        evidence="; ".join(f"seed {seed}: {finding.evidence}" for seed, finding in findings),
        violations=tuple(violations),
        violation_count=len(violations),
    )
