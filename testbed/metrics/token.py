"""What the client sees: time to the first token, time per token, stalls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.contract.event import Kind
from testbed.metrics.events import Events
from testbed.metrics.percentile import NS, Samples, percentile
from testbed.metrics.record import FirstToken, Stalls, TokenGaps, TokenTime
from testbed.metrics.run import Flags, Run
from testbed.metrics.table import Integers

STALL_FLOOR_S = 0.2
STALL_FACTOR = 5.0
"""A stall is a gap longer than max(200 ms, 5 x median TPOT)."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Columns, one entry for each request of the window with a token at the client."""

    req: Integers
    counts: Integers
    """Tokens."""
    done: Flags
    answered: Flags
    """Done, and the record says when it was sent."""
    cut: Flags
    """Failed after its first token, and the record says when it was sent."""
    ttft_s: Samples
    """Of those that were answered or cut; of others without meaning."""
    tpot_s: Samples
    """Of those with two tokens or more; of others 0."""
    gaps_s: Samples
    """Between all neighbouring tokens, of all requests together."""


def answers_of(run: Run, events: Events, inside: Flags, done: Flags) -> Answers:
    """The window's answers as the client saw them."""
    req, t = _by_request(run, events, inside)
    starts = np.flatnonzero(np.diff(req, prepend=-1))
    counts = np.diff(starts, append=req.size)
    first_t, last_t, owner = t[starts], t[starts + counts - 1], req[starts]
    sent_t = np.full(len(run.requests), -1, dtype=np.int64)
    sent = events[Kind.REQUEST_SENT]
    sent_t[run.known(sent.req)] = sent.t
    return Answers(
        req=owner,
        counts=counts,
        done=done[owner],
        answered=done[owner] & (sent_t[owner] >= 0),
        cut=~done[owner] & (sent_t[owner] >= 0),
        ttft_s=(first_t - sent_t[owner]) / NS,
        tpot_s=(last_t - first_t) / np.maximum(counts - 1, 1) / NS,
        gaps_s=np.diff(t)[np.diff(req) == 0] / NS,
    )


def token_figures(answers: Answers) -> tuple[FirstToken, TokenTime, TokenGaps, Stalls]:
    """TTFT and TPOT over the window's completed requests, gaps over all its requests."""
    ttft, cut = answers.ttft_s[answers.answered], answers.ttft_s[answers.cut]
    gaps = answers.gaps_s
    tpot = answers.tpot_s[answers.done & (answers.counts >= 2)]
    return (
        FirstToken(
            p50_s=percentile(ttft, 50),
            p90_s=percentile(ttft, 90),
            p99_s=percentile(ttft, 99),
            requests=int(ttft.size),
            failed_requests=int(cut.size),
            failed_p50_s=percentile(cut, 50),
            failed_p90_s=percentile(cut, 90),
        ),
        TokenTime(p50_s=percentile(tpot, 50), p90_s=percentile(tpot, 90)),
        TokenGaps(
            count=int(gaps.size),
            p50_s=percentile(gaps, 50),
            p90_s=percentile(gaps, 90),
            p99_s=percentile(gaps, 99),
            max_s=percentile(gaps, 100),
        ),
        _stalls(gaps, percentile(tpot, 50)),
    )


def _stalls(gaps: Samples, median_tpot_s: float | None) -> Stalls:
    limit_s = max(STALL_FLOOR_S, STALL_FACTOR * (median_tpot_s or 0.0))
    stalls = gaps[gaps > limit_s]
    return Stalls(
        threshold_s=limit_s,
        p50_s=percentile(stalls, 50),
        p99_s=percentile(stalls, 99),
        max_s=percentile(stalls, 100),
        count=int(stalls.size),
    )


def _by_request(run: Run, events: Events, inside: Flags) -> tuple[Integers, Integers]:
    """(request, time) of the window's tokens, by request, then time."""
    tokens = events[Kind.TOKEN]
    chosen = inside[run.known(tokens.req)]
    req, t = tokens.req[chosen], tokens.t[chosen]
    order = np.lexsort((t, req))
    return req[order], t[order]
