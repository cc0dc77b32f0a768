"""Waits for a connection that ended, however they did, and why transfers got none.

::

    queued ──► waits ──acquired──────────────────────────────► one wait
                 └────refused: timeout, cancelled, closed ───► one wait, one refusal
    refused: queue-full ─────────────────────────────────────► one refusal, no wait

A pool that fails shows nothing but refusals: who is told only of waits that led to an
acknowledged transfer would see none at all.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from testbed.contract.event import Kind
from testbed.metrics.events import Events
from testbed.metrics.percentile import NS, Samples
from testbed.metrics.run import Flags, Run
from testbed.metrics.transfer import main_path

_ENDS = (Kind.POOL_QUEUED, Kind.POOL_ACQUIRED, Kind.POOL_REFUSED)
Key = tuple[int, int, int]
"""Request, sender, receiver."""


@dataclass(frozen=True, slots=True)
class EndedWaits:
    """Seconds of every wait, and refusals by their reason."""

    waits_s: Samples
    refused: dict[str, int]


def ended_waits(run: Run, events: Events, inside: Flags) -> EndedWaits:
    """Those of the window's requests on their way from P to MD."""
    since: dict[Key, int] = {}
    waits: list[float] = []
    refused: Counter[str] = Counter()
    for t, key, kind, reason in _steps(run, events, inside):
        if kind is Kind.POOL_QUEUED:
            since[key] = t
            continue
        if kind is Kind.POOL_REFUSED:
            refused[reason] += 1
        if key in since:
            waits.append((t - since.pop(key)) / NS)
    return EndedWaits(np.array(waits, dtype=np.float64), dict(sorted(refused.items())))


def _steps(run: Run, events: Events, inside: Flags) -> list[tuple[int, Key, Kind, str]]:
    """(time, whose, what, why) in order of (t, node, seq)."""
    rows: list[tuple[tuple[int, int, int], Key, Kind, str]] = []
    for kind in _ENDS:
        table = events[kind]
        chosen = main_path(run, events, table) & inside[run.known(table.req)]
        peers = table.texts["peer"]
        reasons = table.texts["reason"] if kind is Kind.POOL_REFUSED else peers
        columns = (table.t, table.node, table.seq, table.req, peers, reasons)
        for t, node, seq, req, peer, why in zip(
            *(column[chosen].tolist() for column in columns), strict=True
        ):
            key = (req, node, peer)
            rows.append(((t, int(events.rank[node]), seq), key, kind, events.names[why]))
    rows.sort(key=lambda row: row[0])
    return [(order[0], key, kind, why) for order, key, kind, why in rows]
