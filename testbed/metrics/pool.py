"""The state of every connection pool over time, rebuilt from its events.

::

    queued ──► waiting ──acquired or opening──► busy ──released──►
                  └──refused──►                    └──refused──►  (it could not be opened)

Rebuilt from who entered and left, not read from the counts that the events carry, so
that the two can be held against each other by a check.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.metrics.connection import connections
from testbed.metrics.events import Events
from testbed.metrics.percentile import NS, Samples, mean, percentile
from testbed.metrics.record import PoolUse
from testbed.metrics.run import Flags, Run
from testbed.metrics.transfer import Acked
from testbed.metrics.wait import ended_waits

_STEPS = (
    Kind.POOL_QUEUED,
    Kind.POOL_REFUSED,
    Kind.CONNECTION_OPENING,
    Kind.POOL_ACQUIRED,
    Kind.POOL_JOINED,
    Kind.POOL_LEFT,
    Kind.POOL_SUSPENDED,
    Kind.POOL_RESUMED,
    Kind.POOL_RELEASED,
)
Pair = tuple[str, str]


@dataclass(slots=True)
class _State:
    """One pair's pool: who is in it now, and its integrals over the window so far."""

    size: int | None
    busy: dict[int, list[int]] = field(default_factory=dict)
    """Per request: when it was given each of the connections that it has."""
    in_use: int = 0
    opening: Counter[int] = field(default_factory=Counter)
    """Per request: connections that it was given and that are not open yet."""
    lent: set[int] = field(default_factory=set)
    """Requests whose connection another has for a while."""
    waiting: set[int] = field(default_factory=set)
    clock_ns: int = 0
    busy_ns: int = 0
    exhausted_ns: int = 0
    held_ns: list[int] = field(default_factory=list)
    unreleased: int = 0

    def advance(self, t: int, begin_ns: int, end_ns: int) -> None:
        """Account for the time since the last event, as far as it lies in the window."""
        span = min(t, end_ns) - max(self.clock_ns, begin_ns)
        if span > 0:
            self.busy_ns += span * self.in_use
            if self.size is not None and self.in_use >= self.size and self.waiting:
                self.exhausted_ns += span
        self.clock_ns = max(self.clock_ns, t)

    def apply(self, kind: Kind, req: int, t: int, begin_ns: int, end_ns: int) -> None:
        if kind is Kind.POOL_QUEUED:
            self.waiting.add(req)
        elif kind is Kind.POOL_REFUSED and req in self.waiting:
            self.waiting.discard(req)
        elif kind is Kind.CONNECTION_OPENING:
            self._give(req, t)
            self.opening[req] += 1
        elif kind is Kind.POOL_ACQUIRED or kind is Kind.POOL_JOINED:
            if self.opening[req]:
                self.opening[req] -= 1  # given when its opening began
            else:
                self._give(req, t)
        elif kind is Kind.POOL_SUSPENDED:
            self.lent.add(req)
            self.in_use -= 1  # another has it
        elif kind is Kind.POOL_RESUMED:
            self.lent.discard(req)
            self.in_use += 1
        elif req in self.busy:  # released, left, or refused because it could not be opened
            self.opening[req] -= self.opening[req] > 0
            self.in_use -= req not in self.lent
            self.lent.discard(req)
            since = self.busy[req].pop()
            if not self.busy[req]:
                del self.busy[req]
            if begin_ns <= since < end_ns:
                self.held_ns.append(t - since)

    def _give(self, req: int, t: int) -> None:
        self.waiting.discard(req)
        self.busy.setdefault(req, []).append(t)
        self.in_use += 1

    def close(self, begin_ns: int, end_ns: int) -> None:
        self.advance(end_ns, begin_ns, end_ns)
        self.unreleased = sum(
            begin_ns <= since < end_ns for times in self.busy.values() for since in times
        )


def pool_use(run: Run, events: Events, acked: Acked, inside: Flags) -> PoolUse:
    """Figures over all pools; waits are those of the window's requests."""
    states = _states(run, events)
    if not states:
        return PoolUse()
    ended = ended_waits(run, events, inside)
    measure_ns = run.window.measure_ns
    held = [span for state in states.values() for span in state.held_ns]
    unreleased = sum(state.unreleased for state in states.values())
    busy_ns = sum(state.busy_ns for state in states.values())
    waits: Samples = acked.wait_s[inside[acked.req]]
    sizes = [state.size for state in states.values() if state.size is not None]
    bounded = len(sizes) == len(states)
    opened = connections(run, events)
    return PoolUse(
        size=max(sizes) if bounded else None,
        utilization=busy_ns / (measure_ns * sum(sizes)) if bounded else None,
        queue_wait_mean_s=mean(waits),
        queue_wait_p99_s=percentile(waits, 99),
        waits=int(ended.waits_s.size),
        wait_mean_s=mean(ended.waits_s),
        wait_p50_s=percentile(ended.waits_s, 50),
        wait_p90_s=percentile(ended.waits_s, 90),
        wait_p99_s=percentile(ended.waits_s, 99),
        wait_max_s=percentile(ended.waits_s, 100),
        refused=sum(ended.refused.values()),
        refused_by_reason=ended.refused,
        exhausted_fraction=sum(state.exhausted_ns for state in states.values())
        / (measure_ns * len(states))
        if bounded
        else None,
        occupancy_mean=busy_ns / measure_ns,
        occupancy_little=None if unreleased else sum(held) / NS / run.measure_s,
        opened=opened.count,
        open_peak=opened.peak,
        opening_mean_s=mean(opened.took_s),
        closed_by_reason=opened.closed,
    )


def _states(run: Run, events: Events) -> dict[Pair, _State]:
    """The final state of the pool of every pair that the plan has, or the events name.

    Pools to RLD are left out: they cross no WAN, and would thin out every mean. So are those
    from RLD, which carry no prompt.
    """
    states: dict[Pair, _State] = {}
    for sender in run.agents(Role.PREFILL):
        for peer in sender.peers:
            if peer.role is Role.DECODE:
                states[sender.node, peer.name] = _State(sender.pool.size)
    relays = {agent.node for agent in run.agents(Role.RELAY)}
    begin_ns, end_ns = run.window.begin_ns, run.window.end_ns
    for t, node, receiver, kind, req in _ordered(events):
        pair = (events.names[node], events.names[receiver])
        if relays & {*pair}:
            continue
        if pair not in states:
            states[pair] = _State(run.agent(pair[0]).pool.size)
        states[pair].advance(t, begin_ns, end_ns)
        states[pair].apply(kind, req, t, begin_ns, end_ns)
    for state in states.values():
        state.close(begin_ns, end_ns)
    return states


def _ordered(events: Events) -> list[tuple[int, int, int, Kind, int]]:
    """(t, node, peer, kind, req) of all pool events in order of (t, node, seq)."""
    tables = [events[kind] for kind in _STEPS]
    t = np.concatenate([table.t for table in tables])
    node = np.concatenate([table.node for table in tables])
    seq = np.concatenate([table.seq for table in tables])
    peer = np.concatenate([table.texts["peer"] for table in tables])
    req = np.concatenate([table.req for table in tables])
    kind = np.repeat(np.arange(len(_STEPS)), [table.t.size for table in tables])
    order = np.lexsort((seq, events.rank[node], t))
    rows = zip(*(column[order].tolist() for column in (t, node, peer, kind, req)), strict=True)
    return [(at, sender, to, _STEPS[step], which) for at, sender, to, step, which in rows]
