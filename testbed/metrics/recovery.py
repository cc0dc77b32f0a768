"""What a fault did to the service: before, during and after it, and how long it took to recover.

::

    ──────[  before  ]────[ during: first begin to last end ]────[  after  ]──────▶ time
          as long as the fault                                    likewise

A fault that flaps is one: what lies between its spans belongs to it. A fault that stays to the end
has no after. Each phase is looked at from the client (tokens a second, times to first tokens) and
from the wire (how fast the transfers were that were acknowledged in it).
"""

from __future__ import annotations

import numpy as np

from testbed.contract.event import Kind
from testbed.contract.fault import Span
from testbed.metrics.events import Events
from testbed.metrics.percentile import NS, Samples
from testbed.metrics.record import FaultEffect, Phase, Ratios
from testbed.metrics.run import Run
from testbed.metrics.table import Integers
from testbed.metrics.transfer import Acked

SHORTEST_NS = 1_000_000_000
"""A fault of a moment is still compared with a second on each side."""
BIN_NS = 500_000_000
RECOVERED = 0.9
"""Service is back with the first bin that has so much of the tokens a second from before."""


def fault_effects(run: Run, events: Events, acked: Acked) -> dict[str, FaultEffect]:
    """One entry a fault that came at all, by its name."""
    tokens = _Tokens(events)
    last_ns = int(max((table.t[-1] for table in events.tables.values() if table.t.size), default=0))
    waits = any(fault.trigger is not None for fault in run.plan.faults)
    bases = _reached_ns(events) if waits else {}
    found = {}
    for fault in run.plan.faults:
        base_ns = 0 if fault.trigger is None else bases.get(fault.name)
        spans = () if base_ns is None else fault.moved(base_ns)
        if spans and spans[0].begin_ns <= last_ns:
            found[fault.name] = _effect(spans, tokens, acked, last_ns)
    return found


class _Tokens:
    """Times of all tokens, and of first ones with how long they took; both ascending."""

    def __init__(self, events: Events) -> None:
        table, sent = events[Kind.TOKEN], events[Kind.REQUEST_SENT]
        self.t = table.t
        since = dict(zip(sent.req.tolist(), sent.t.tolist(), strict=True))
        req, places = np.unique(table.req, return_index=True)
        known = np.array([one in since for one in req.tolist()], dtype=np.bool_)
        at = table.t[places[known]]
        took = at - np.array([since[one] for one in req[known].tolist()], dtype=np.int64)
        order = np.argsort(at, kind="stable")
        self.first_t, self.ttft_s = at[order], took[order] / NS


def _reached_ns(events: Events) -> dict[str, int]:
    """When what a fault waited for came, by the fault's name."""
    table = events[Kind.FAULT_REACHED]
    names = [events.names[code] for code in table.texts["fault"].tolist()]
    return dict(zip(reversed(names), reversed(table.t.tolist()), strict=True))


def _effect(spans: tuple[Span, ...], tokens: _Tokens, acked: Acked, last_ns: int) -> FaultEffect:
    begin_ns, end_ns = spans[0].begin_ns, spans[-1].end_ns
    if end_ns is not None and end_ns > last_ns:
        end_ns = None
    until_ns = last_ns if end_ns is None else end_ns
    length_ns = max(until_ns - begin_ns, SHORTEST_NS)
    before = _phase(max(0, begin_ns - length_ns), begin_ns, tokens, acked)
    during = _phase(begin_ns, until_ns, tokens, acked)
    after = Phase()
    if end_ns is not None:
        after = _phase(end_ns, min(end_ns + length_ns, last_ns), tokens, acked)
    kept = None
    if before.tokens_per_s and during.tokens_per_s is not None:
        kept = during.tokens_per_s / before.tokens_per_s
    recovery_s = None
    if end_ns is not None and before.tokens_per_s:
        recovery_s = _recovery_s(tokens.t, end_ns, last_ns, before.tokens_per_s)
    return FaultEffect(
        begin_s=begin_ns / NS, end_s=None if end_ns is None else end_ns / NS,
        before=before, during=during, after=after, kept_share=kept, recovery_s=recovery_s,
        transfer_recovery_s=_transfer_recovery_s(acked, end_ns, before.transfer_bps),
        during_ratio=_ratios(during, before), after_ratio=_ratios(after, before),
        after_over_during=_after_over_during(acked, begin_ns, end_ns, length_ns),
    )  # fmt: skip


def _ratios(phase: Phase, before: Phase) -> Ratios:
    return Ratios(
        tokens_per_s=_ratio(phase.tokens_per_s, before.tokens_per_s),
        transfer_bps=_ratio(phase.transfer_bps, before.transfer_bps),
        ttft=_ratio(phase.ttft_s, before.ttft_s),
    )


def _ratio(value: float | None, to: float | None) -> float | None:
    return value / to if value is not None and to else None


def _speeds(acked: Acked) -> Samples:
    """Payload bit/s of each transfer."""
    return acked.size_bytes * 8 / np.maximum(acked.duration_s, 1 / NS)


def _began(acked: Acked) -> Integers:
    return acked.t - np.rint(acked.duration_s * NS).astype(np.int64)


def _transfer_recovery_s(acked: Acked, end_ns: int | None, before: float | None) -> float | None:
    """From the end to the first acknowledgement of one that is as fast as before."""
    if end_ns is None or before is None:
        return None
    back = acked.t[(_began(acked) >= end_ns) & (_speeds(acked) >= RECOVERED * before)]
    return float(back.min() - end_ns) / NS if back.size else None


def _after_over_during(
    acked: Acked, begin_ns: int, end_ns: int | None, length_ns: int
) -> float | None:
    if end_ns is None:
        return None
    began, speeds = _began(acked), _speeds(acked)
    during = speeds[(began >= begin_ns) & (began < end_ns)]
    after = speeds[(began >= end_ns) & (began < end_ns + length_ns)]
    return float(np.median(after) / np.median(during)) if during.size and after.size else None


def _phase(begin_ns: int, end_ns: int, tokens: _Tokens, acked: Acked) -> Phase:
    if end_ns <= begin_ns + 1:
        return Phase()  # an instant has no rate
    chosen = (acked.t >= begin_ns) & (acked.t < end_ns)
    speeds = _speeds(acked)[chosen]
    first, last = np.searchsorted(tokens.first_t, (begin_ns, end_ns))
    return Phase(
        tokens_per_s=_count(tokens.t, begin_ns, end_ns) * NS / (end_ns - begin_ns),
        transfers=int(chosen.sum()),
        transfer_bps=float(np.median(speeds)) if speeds.size else None,
        ttft_s=float(np.median(tokens.ttft_s[first:last])) if first < last else None,
    )


def _recovery_s(tokens: Integers, end_ns: int, last_ns: int, before: float) -> float | None:
    """Begin of the first whole bin that has enough; None where none has."""
    begins = np.arange(end_ns, max(last_ns - BIN_NS, end_ns) + 1, BIN_NS, dtype=np.int64)
    for begin_ns in begins.tolist():
        if _count(tokens, begin_ns, begin_ns + BIN_NS) * NS / BIN_NS >= RECOVERED * before:
            return (begin_ns - end_ns) / NS
    return None


def _count(sorted_t: Integers, begin_ns: int, end_ns: int) -> int:
    first, last = np.searchsorted(sorted_t, (begin_ns, end_ns))
    return int(last - first)
