"""What the client sees: time to the first token, time per token, stalls."""

from __future__ import annotations

import numpy as np

from testbed.contract.event import Kind
from testbed.metrics.events import Events
from testbed.metrics.percentile import NS, Samples, percentile
from testbed.metrics.record import FirstToken, Stalls, TokenTime
from testbed.metrics.run import Flags, Run
from testbed.metrics.table import Integers

STALL_FLOOR_S = 0.2
STALL_FACTOR = 5.0
"""A stall is a gap longer than max(200 ms, 5 x median TPOT)."""


def token_figures(
    run: Run, events: Events, inside: Flags, done: Flags
) -> tuple[FirstToken, TokenTime, Stalls]:
    """TTFT and TPOT over the window's completed requests, stalls over all its requests."""
    req, t = _by_request(run, events, inside)
    starts = np.flatnonzero(np.diff(req, prepend=-1))
    counts = np.diff(starts, append=req.size)
    first_t, last_t, owner = t[starts], t[starts + counts - 1], req[starts]
    sent_t = np.full(len(run.requests), -1, dtype=np.int64)
    sent = events[Kind.REQUEST_SENT]
    sent_t[run.known(sent.req)] = sent.t

    answered = done[owner] & (sent_t[owner] >= 0)
    ttft: Samples = (first_t - sent_t[owner])[answered] / NS
    several = done[owner] & (counts >= 2)
    tpot: Samples = (last_t - first_t)[several] / (counts[several] - 1) / NS
    within = np.diff(req) == 0
    gaps: Samples = np.diff(t)[within] / NS
    return (
        FirstToken(
            p50_s=percentile(ttft, 50), p90_s=percentile(ttft, 90), p99_s=percentile(ttft, 99)
        ),
        TokenTime(p50_s=percentile(tpot, 50), p90_s=percentile(tpot, 90)),
        _stalls(gaps, percentile(tpot, 50)),
    )


def _stalls(gaps: Samples, median_tpot_s: float | None) -> Stalls:
    limit_s = max(STALL_FLOOR_S, STALL_FACTOR * (median_tpot_s or 0.0))
    stalls = gaps[gaps > limit_s]
    return Stalls(
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
