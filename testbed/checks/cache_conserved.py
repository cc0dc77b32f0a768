"""Does every prefix cache add up? A block that leaks is lost memory, one made up a wrong hit.

Per instance, at every event::

    bytes in use = (held at the start + published - evicted) x bytes of a block
    0 <= bytes in use <= budget

Room that was reserved is filled or given back: at the end nobody holds a lock or a
reservation. A prompt is matched before it is published, and published no earlier than its
KV exists: at P when its prefill ends, at RLD and MD when its transfer is verified.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from testbed.checks.authority_single import NO_PLANE
from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.checks.plane import CacheClosed, CacheStep
from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.contract.serving import Serving

SLACK_NS = {"virtual": 0, "real": 10_000_000}
"""A publication may be noted this much before the end of the prefill, or the verification,
that it belongs to: both are of one instant, which lasts a moment on a live kernel."""


@dataclass(slots=True)
class _Cache:
    """One cache as its events tell it; blocks are counted since it was made."""

    budget: int
    block: int
    published: int
    evicted: int
    peak: int = 0
    faults: list[str] = field(default_factory=list)
    asked: dict[int, CacheStep] = field(default_factory=dict)
    room: dict[int, int] = field(default_factory=dict)
    shared: set[int] = field(default_factory=set)
    last: tuple[int, int] = (0, 0)

    def take(self, step: CacheStep) -> None:
        """Replay one event."""
        if step.kind is Kind.CACHE_MATCHED:
            if not 0 <= step.blocks <= step.of:
                self.faults.append(f"request {step.req} matched {step.blocks} of {step.of} blocks")
            if step.req in self.asked:
                self.faults.append(f"request {step.req} was matched twice")
            self.asked[step.req] = step
        else:
            if step.evicted < self.evicted:
                self.faults.append(f"evicted blocks fell to {step.evicted} at {step.t} ns")
            self.evicted = step.evicted
            if step.kind is Kind.CACHE_RESERVED:
                self.room[step.req] = step.blocks
            else:
                self._publish(step)
        self.last = step.t, step.seq
        self._add_up(step.t, step.used_bytes)

    def close(self, end: CacheClosed) -> None:
        """Compare the last word with what went before."""
        if (end.t, end.seq) < self.last:
            self.faults.append(f"closed at {end.t} ns, before its last use")
        if end.used_bytes != end.blocks * self.block:
            self.faults.append(
                f"{end.used_bytes:,} bytes in use at its end for {end.blocks} blocks"
            )
        if end.locks or end.reservations:
            self.faults.append(
                f"{end.locks} locks and {end.reservations} reservations left at its end"
            )
        self._add_up(end.t, end.used_bytes)

    def _add_up(self, t: int, used: int) -> None:
        self.peak = max(self.peak, used)
        held = (self.published - self.evicted) * self.block
        if used != held:
            self.faults.append(f"{used:,} bytes in use at {t} ns, its blocks are {held:,}")
        if not 0 <= used <= self.budget:
            self.faults.append(f"{used:,} bytes in use at {t} ns of {self.budget:,}")

    def _publish(self, step: CacheStep) -> None:
        asked = self.asked.get(step.req)
        if asked is None:
            self.faults.append(f"request {step.req} was published but never matched")
        elif not 0 <= step.blocks <= asked.of - asked.blocks:
            self.faults.append(
                f"request {step.req} published {step.blocks} blocks, "
                f"it lacked {asked.of - asked.blocks}"
            )
        if step.req in self.shared:
            self.faults.append(f"request {step.req} was published twice")
        self.shared.add(step.req)
        if step.blocks > self.room.get(step.req, step.blocks):
            self.faults.append(
                f"request {step.req} published {step.blocks} blocks, "
                f"reserved were {self.room[step.req]}"
            )
        self.published += step.blocks


class CacheConserved:
    """Bytes in use follow from blocks held, published and evicted, within the budget."""

    name = "cache-conserved"
    claim = "Every prefix cache adds up, keeps its budget, and shows only KV that is there."

    def examine(self, case: Case) -> Finding:
        """Replay every cache; compare publications with prefills and verifications."""
        serving = case.plan.agents[0].serving
        if serving is None:
            return found(self.name, self.claim, NO_PLANE, [])
        roles = {agent.node: agent.role for agent in case.plan.agents}
        caches: dict[str, _Cache] = {}
        broken: list[str] = []
        ready, begun = _ready(case), _begun(case)
        slack = SLACK_NS[case.plan.clock]
        for step in case.history.plane.caches:
            budget = _budget(serving, roles.get(step.node))
            if budget is None:
                broken.append(f"{step.node}: a {step.kind} where no cache is")
                continue
            if step.node not in caches:
                caches[step.node] = _new(case, serving, budget)
            caches[step.node].take(step)
            if step.kind is Kind.CACHE_PUBLISHED and step.blocks:
                way = step.node, step.req
                if way not in ready or step.t + slack < ready[way]:
                    broken.append(
                        f"{step.node}: request {step.req} was published before its KV was there"
                    )
                elif way not in begun or begun[way] > (step.t, step.seq):
                    broken.append(
                        f"{step.node}: request {step.req} was published before its KV was begun"
                    )
        closed = {end.node for end in case.history.plane.closed} | case.history.lost
        broken.extend(
            f"{node}: was used and never closed: what it still held is not known"
            for node in sorted(caches.keys() - closed)
        )
        for end in case.history.plane.closed:
            budget = _budget(serving, roles.get(end.node))
            if budget is None:
                broken.append(f"{end.node}: a {Kind.CACHE_CLOSED} where no cache is")
            else:
                caches.setdefault(end.node, _new(case, serving, budget)).close(end)
        for node, cache in sorted(caches.items()):
            broken.extend(f"{node}: {fault}" for fault in cache.faults)
        peaks = "; ".join(
            f"{node}: peak {cache.peak / 1e6:,.1f} MB, {cache.evicted:,} blocks evicted"
            for node, cache in sorted(caches.items())
        )
        return found(self.name, self.claim, peaks or "no cache was used", broken)


def _budget(serving: Serving, role: Role | None) -> int | None:
    if role is Role.PREFILL:
        return serving.caches.prefill_bytes
    if role is Role.RELAY:
        return serving.caches.relay_bytes or None
    return serving.caches.decode_bytes if role is Role.DECODE else None


def _new(case: Case, serving: Serving, budget: int) -> _Cache:
    """A cache as it is at the barrier, documents in it."""
    shape = case.plan.agents[0].shape
    block = shape.block_tokens * shape.bytes_per_token
    room = budget // block
    published = 0
    for _, tokens in serving.documents:
        blocks = tokens // shape.block_tokens
        published += blocks if blocks <= room else 0  # a larger one is refused as a whole
    return _Cache(budget, block, published, max(0, published - room))


def _ready(case: Case) -> dict[tuple[str, int], int]:
    """When a prompt's KV was first whole at an instance: prefilled at P, verified at MD."""
    ready: dict[tuple[str, int], int] = {}
    for step in case.history.plane.computed:
        if step.kind is Kind.PREFILL_END:
            ready.setdefault((step.node, step.req), step.t)
    for one in case.history.of(Kind.KV_VERIFIED):
        ready.setdefault((one.node, one.req), one.t)
    return ready


def _begun(case: Case) -> dict[tuple[str, int], tuple[int, int]]:
    """Time and number of the event with which a prompt's KV first began to come about."""
    begun: dict[tuple[str, int], tuple[int, int]] = {}
    for step in case.history.plane.computed:
        if step.kind is Kind.PREFILL_START:
            begun.setdefault((step.node, step.req), (step.t, step.seq))
    for one in case.history.of(Kind.KV_BEGIN):
        begun.setdefault((one.node, one.req), (one.t, one.seq))
    return begun
