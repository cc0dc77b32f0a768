"""What was asked of the WAN: which transfers to MD wanted a connection, when, how large.

Without a serving plane the workload says so. With one, MD's cache decides what must be
sent when the request comes, and what goes to RLD or stays within a site loads no leg.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.metrics.events import Events
from testbed.metrics.run import Flags, Run, role_codes

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Offer:
    """One transfer that asked ``pair`` (sender, receiver) for a connection."""

    req: int
    t: int
    pair: Pair
    size_bytes: int


def offers(run: Run, events: Events) -> tuple[Offer, ...]:
    """All of them, in order of time. One that never started has the size that MD lacked."""
    queued = events[Kind.POOL_QUEUED]
    columns = (run.known(queued.req), queued.t, queued.node, queued.texts["peer"])
    rows = [
        (req, t, (events.names[node], events.names[peer]))
        for req, t, node, peer in zip(*(column.tolist() for column in columns), strict=True)
    ]
    if not run.serves:
        return tuple(Offer(req, t, pair, run.requests[req].wire_bytes) for req, t, pair in rows)
    main = {agent.node for agent in run.agents(Role.DECODE)}
    started, lacked = _started(events), lacking(run, events)
    return tuple(
        Offer(req, t, pair, started.get((req, pair), lacked.get(req, 0)))
        for req, t, pair in rows
        if pair[1] in main and run.crosses(*pair)
    )


def offered_bytes(run: Run, events: Events, inside: Flags) -> int:
    """Payload that the window's requests brought for the WAN, sent or not."""
    asked = np.flatnonzero(inside).tolist()
    if not run.serves:
        return sum(run.requests[req].wire_bytes for req in asked)
    table = events[Kind.REQUEST_ROUTED]
    columns = (table.req, table.texts["prefill"], table.texts["decode"])
    far = {
        req
        for req, prefill, decode in zip(*(column.tolist() for column in columns), strict=True)
        if events.names[decode] and run.crosses(events.names[prefill], events.names[decode])
    }
    lacked = lacking(run, events)
    return sum(lacked.get(req, 0) for req in asked if req in far)


def lacking(run: Run, events: Events) -> dict[int, int]:
    """Wire bytes of the blocks that MD's cache did not hold, by request."""
    table = events[Kind.CACHE_MATCHED]
    main = np.isin(table.node, role_codes(run, events, Role.DECODE))
    missing = (table.integers["of"] - table.integers["blocks"])[main]
    shape = run.plan.agents[0].shape
    return {
        req: blocks * shape.block_tokens * shape.bytes_per_token + shape.fixed_bytes
        for req, blocks in zip(table.req[main].tolist(), missing.tolist(), strict=True)
        if blocks
    }


def _started(events: Events) -> dict[tuple[int, Pair], int]:
    table = events[Kind.TRANSFER_START]
    columns = (table.req, table.node, table.texts["peer"], table.size)
    return {
        (req, (events.names[node], events.names[peer])): size
        for req, node, peer, size in zip(*(column.tolist() for column in columns), strict=True)
    }
