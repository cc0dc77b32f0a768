"""Feeds the oracle with what the emulated run did: the same arrivals, the same sizes."""

from __future__ import annotations

import numpy as np

from testbed.contract.event import Kind
from testbed.metrics.events import Events
from testbed.metrics.path import round_trip_ns
from testbed.metrics.percentile import NS, mean, percentile
from testbed.metrics.record import Oracle
from testbed.metrics.run import Flags, Run
from testbed.oracle import IdealLink, Outcome, Transfer, share


def ideal_outcomes(run: Run, events: Events) -> tuple[Outcome, ...]:
    """Every transfer that queued for a connection, sent over an ideal link instead.

    Empty where nothing queued or the plan has no leg. The round trip is that of the
    most distant pair.
    """
    queued = events[Kind.POOL_QUEUED]
    run.known(queued.req)
    if not queued.t.size or run.capacity_bps <= 0:
        return ()
    rows = zip(
        queued.req.tolist(),
        queued.t.tolist(),
        queued.node.tolist(),
        queued.texts["peer"].tolist(),
        strict=True,
    )
    pairs: dict[tuple[str, str], str] = {}
    transfers: list[Transfer] = []
    for req, t, node, peer in rows:
        pair = (events.names[node], events.names[peer])
        label = pairs.setdefault(pair, " ".join(pair))
        transfers.append(Transfer(req, t / NS, run.requests[req].wire_bytes, label))
    rtt_ns = max(round_trip_ns(run.plan.network, a, b) for a, b in pairs)
    sender = run.agent(next(iter(pairs))[0])
    return share(transfers, IdealLink(run.capacity_bps, sender.pool.size, rtt_ns / NS))


def oracle(outcomes: tuple[Outcome, ...], inside: Flags) -> Oracle:
    """Figures over the transfers of the window's requests."""
    chosen = [outcome for outcome in outcomes if inside[outcome.req]]
    durations = np.array([outcome.duration_s for outcome in chosen], dtype=np.float64)
    waits = np.array([outcome.wait_s for outcome in chosen], dtype=np.float64)
    return Oracle(
        p50_s=percentile(durations, 50),
        p99_s=percentile(durations, 99),
        queue_wait_mean_s=mean(waits),
    )
