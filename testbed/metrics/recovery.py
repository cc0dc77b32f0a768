"""What a fault did to the service: before, during and after it, and how long it took to recover.

::

    ──────[  before  ]────[ during: first begin to last end ]────[  after  ]──────▶ time
          as long as the fault                                    likewise

A fault that flaps is one: what lies between its spans belongs to it. A fault that stays to the end
has no after. Each phase is looked at from the client (tokens a second) and from the wire (how fast
the transfers were that were acknowledged in it).
"""

from __future__ import annotations

import numpy as np

from testbed.contract.event import Kind
from testbed.contract.fault import PlannedFault
from testbed.metrics.events import Events
from testbed.metrics.percentile import NS
from testbed.metrics.record import FaultEffect, Phase
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
    tokens = events[Kind.TOKEN].t
    last_ns = int(max((table.t[-1] for table in events.tables.values() if table.t.size), default=0))
    return {
        fault.name: _effect(fault, tokens, acked, last_ns)
        for fault in run.plan.faults
        if fault.spans and fault.spans[0].begin_ns <= last_ns
    }


def _effect(fault: PlannedFault, tokens: Integers, acked: Acked, last_ns: int) -> FaultEffect:
    begin_ns, end_ns = fault.spans[0].begin_ns, fault.spans[-1].end_ns
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
        recovery_s = _recovery_s(tokens, end_ns, last_ns, before.tokens_per_s)
    return FaultEffect(
        begin_s=begin_ns / NS, end_s=None if end_ns is None else end_ns / NS,
        before=before, during=during, after=after, kept_share=kept, recovery_s=recovery_s,
    )  # fmt: skip


def _phase(begin_ns: int, end_ns: int, tokens: Integers, acked: Acked) -> Phase:
    if end_ns <= begin_ns + 1:
        return Phase()  # an instant has no rate
    chosen = (acked.t >= begin_ns) & (acked.t < end_ns)
    speeds = acked.size_bytes[chosen] * 8 / np.maximum(acked.duration_s[chosen], 1 / NS)
    return Phase(
        tokens_per_s=_count(tokens, begin_ns, end_ns) * NS / (end_ns - begin_ns),
        transfers=int(chosen.sum()),
        transfer_bps=float(np.median(speeds)) if speeds.size else None,
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
