"""Feeds the oracle with what the emulated run did: the same arrivals, the same sizes."""

from __future__ import annotations

import numpy as np

from testbed.contract.role import Role
from testbed.metrics.events import Events
from testbed.metrics.offered import offers
from testbed.metrics.path import round_trip_ns
from testbed.metrics.percentile import NS, mean, percentile
from testbed.metrics.record import Oracle
from testbed.metrics.run import Flags, Run
from testbed.oracle import IdealLink, Outcome, Transfer, share


def ideal_outcomes(run: Run, events: Events) -> tuple[Outcome, ...]:
    """Every transfer that asked for a connection over the WAN, sent over an ideal link instead.

    Empty where nothing asked or the plan has no leg. The round trip is that of the
    most distant pair. What RLD sends MD takes its share of the link and is left out.
    """
    asked = offers(run, events)
    if not asked or run.capacity_bps <= 0:
        return ()
    pairs = {offer.pair: " ".join(offer.pair) for offer in asked}
    transfers = [
        Transfer(offer.req, offer.t / NS, offer.size_bytes, pairs[offer.pair]) for offer in asked
    ]
    network = run.plan.emulated
    rtt_ns = max(round_trip_ns(network, a, b) for a, b in pairs)
    sender = run.agent(asked[0].pair[0])
    outcomes = share(transfers, IdealLink(run.capacity_bps, sender.pool.most, rtt_ns / NS))
    relays = {agent.node for agent in run.agents(Role.RELAY)}
    return tuple(
        outcome
        for offer, outcome in zip(asked, outcomes, strict=True)
        if offer.pair[0] not in relays
    )


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
