"""Connections that a discipline opens on demand: how many, how many at once, why they end.

Those to and from RLD are left out, as in all figures of pools.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.metrics.events import Events
from testbed.metrics.percentile import NS, Samples
from testbed.metrics.run import Run

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Connected:
    """Figures of the window; None where no pool of the plan opens on demand."""

    count: int | None
    peak: int | None
    took_s: Samples
    closed: dict[str, int]


def connections(run: Run, events: Events) -> Connected:
    """Count what was opened and closed within the window, and what was open in it at once."""
    begin_ns, end_ns = run.window.begin_ns, run.window.end_ns
    took: list[float] = []
    closed: Counter[str] = Counter()
    now: defaultdict[Pair, int] = defaultdict(int)
    peak = 0
    for t, pair, took_ns, reason in _changes(run, events):
        if t >= end_ns:
            break
        if t >= begin_ns:  # what was open when the window began counts too
            peak = max(peak, *now.values(), 0)
        now[pair] += 1 if took_ns is not None else -1
        if t < begin_ns:
            continue
        if took_ns is None:
            closed[reason] += 1
        else:
            took.append(took_ns / NS)
    peak = max(peak, *now.values(), 0)
    on_demand = any(agent.pool.discipline.kind != "fifo" for agent in run.plan.agents)
    return Connected(
        count=len(took) if on_demand else None,
        peak=peak if on_demand else None,
        took_s=np.array(took, dtype=np.float64),
        closed=dict(sorted(closed.items())),
    )


def _changes(run: Run, events: Events) -> Iterator[tuple[int, Pair, int | None, str]]:
    """(time, pair, time to open or None for a closing, why closed) in order of (t, node, seq)."""
    relays = {agent.node for agent in run.agents(Role.RELAY)}
    rows: list[tuple[tuple[int, int, int], Pair, int | None, str]] = []
    for kind in (Kind.CONNECTION_OPENED, Kind.CONNECTION_CLOSED):
        table = events[kind]
        took = table.integers.get("took_ns", table.size)
        reasons = table.texts.get("reason", table.node)
        columns = (table.t, table.node, table.seq, table.texts["peer"], took, reasons)
        for t, node, seq, peer, took_ns, why in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            pair = (events.names[node], events.names[peer])
            if not relays & {*pair}:
                opened = kind is Kind.CONNECTION_OPENED
                order = (t, int(events.rank[node]), seq)
                rows.append((order, pair, took_ns if opened else None, events.names[why]))
    rows.sort(key=lambda row: row[0])
    for order, pair, took_ns, reason in rows:
        yield order[0], pair, took_ns, reason
