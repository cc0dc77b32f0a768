"""What the serving plane did: routes, prefix caches, prefill, relay decode and handoffs.

Part of a history. Everything is kept in order of (t, node, seq) once ``settle`` ran.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias

from testbed.checks.line import Line, job_of
from testbed.contract.event import Kind


@dataclass(frozen=True, slots=True)
class Routed:
    """A router's decision; an instance that the pipeline lacks is an empty name."""

    t: int
    node: str
    seq: int
    req: int
    pipeline: str
    prefill: str
    decode: str
    relay: str


@dataclass(frozen=True, slots=True)
class CacheStep:
    """One event of a prefix cache: a match, a reservation or a publication.

    Attributes:
        used_bytes: in use behind the event.
        blocks: matched, reserved (0 where that was refused), or newly published.
        of: blocks of the prompt; 0 but in a match.
        evicted: blocks evicted since the cache was made; 0 in a match.
    """

    t: int
    node: str
    seq: int
    kind: Kind
    req: int
    used_bytes: int
    blocks: int
    of: int = 0
    evicted: int = 0


@dataclass(frozen=True, slots=True)
class CacheClosed:
    """The last word of a cache: what it holds, and what somebody still holds of it."""

    t: int
    node: str
    seq: int
    used_bytes: int
    blocks: int
    locks: int
    reservations: int


@dataclass(frozen=True, slots=True)
class Computed:
    """Start or end of one prompt's prefill."""

    t: int
    node: str
    seq: int
    kind: Kind
    req: int


@dataclass(frozen=True, slots=True)
class RelayEnd:
    """RLD gave a request up at position ``tokens``, having told MD ``ids`` in ``size`` bytes."""

    t: int
    node: str
    seq: int
    req: int
    tokens: int
    cause: str
    ids: int = 0
    size: int = 0

    def own_tokens(self, base: int) -> int:
        """What it emitted itself, where its first own position is ``base``."""
        return max(0, self.tokens - base)


@dataclass(frozen=True, slots=True)
class Handoff:
    """Start or end of a handoff at MD; starts have a mode, ends MD's first position."""

    t: int
    node: str
    seq: int
    kind: Kind
    req: int
    position: int = 0
    mode: str = ""


@dataclass(frozen=True, slots=True)
class DeviceStep:
    """A sequence got device memory, lost it to an older one, or was decoded first at MD.

    Attributes:
        held: sequences that hold memory behind the event; 0 where it is no matter of memory.
        used_bytes: KV of these; 0 likewise.
    """

    t: int
    node: str
    seq: int
    kind: Kind
    req: int
    held: int = 0
    used_bytes: int = 0


PlaneStep: TypeAlias = Routed | CacheStep | CacheClosed | Computed | RelayEnd | Handoff | DeviceStep

PLANE_KINDS = frozenset(
    {
        Kind.REQUEST_ROUTED,
        Kind.CACHE_MATCHED,
        Kind.CACHE_PUBLISHED,
        Kind.CACHE_RESERVED,
        Kind.CACHE_CLOSED,
        Kind.PREFILL_START,
        Kind.PREFILL_END,
        Kind.RELAY_END,
        Kind.SEQUENCE_ADMITTED,
        Kind.SEQUENCE_PREEMPTED,
        Kind.DECODE_START,
        Kind.HANDOFF_START,
        Kind.HANDOFF_END,
    }
)


_MEMORY = frozenset({Kind.SEQUENCE_ADMITTED, Kind.SEQUENCE_PREEMPTED})


@dataclass(slots=True)
class Plane:
    """All events of the serving plane. A pool study has prefills only."""

    routed: list[Routed] = field(default_factory=list)
    caches: list[CacheStep] = field(default_factory=list)
    closed: list[CacheClosed] = field(default_factory=list)
    computed: list[Computed] = field(default_factory=list)
    relay_ends: list[RelayEnd] = field(default_factory=list)
    handoffs: list[Handoff] = field(default_factory=list)
    device: list[DeviceStep] = field(default_factory=list)

    def take(self, line: Line, t: int, node: str, seq: int, kind: Kind) -> None:
        """Keep one event of ``PLANE_KINDS``."""
        if kind is Kind.CACHE_CLOSED:
            counts = [line.integer(key) for key in ("size", "blocks", "locks", "reservations")]
            self.closed.append(CacheClosed(t, node, seq, *counts))
            return
        req = job_of(line)
        if kind is Kind.REQUEST_ROUTED:
            names = [line.text(key) for key in ("pipeline", "prefill", "decode", "relay")]
            self.routed.append(Routed(t, node, seq, req, *names))
        elif kind is Kind.CACHE_MATCHED:
            used, blocks, of = line.integer("size"), line.integer("blocks"), line.integer("of")
            self.caches.append(CacheStep(t, node, seq, kind, req, used, blocks, of=of))
        elif kind is Kind.CACHE_PUBLISHED:
            used, blocks = line.integer("size"), line.integer("blocks")
            gone = line.integer("evicted")
            self.caches.append(CacheStep(t, node, seq, kind, req, used, blocks, evicted=gone))
        elif kind is Kind.CACHE_RESERVED:
            used, gone = line.integer("size"), line.integer("evicted")
            blocks = 0 if line.text("reason") else line.integer("blocks")
            self.caches.append(CacheStep(t, node, seq, kind, req, used, blocks, evicted=gone))
        elif kind is Kind.RELAY_END:
            tokens, cause = line.integer("tokens"), line.text("cause")
            ids, size = line.integer("ids"), line.integer("size")
            self.relay_ends.append(RelayEnd(t, node, seq, req, tokens, cause, ids, size))
        elif kind in _MEMORY:
            held, size = line.integer("held"), line.integer("size")
            self.device.append(DeviceStep(t, node, seq, kind, req, held, size))
        elif kind is Kind.DECODE_START:
            self.device.append(DeviceStep(t, node, seq, kind, req))
        elif kind is Kind.HANDOFF_START:
            self.handoffs.append(Handoff(t, node, seq, kind, req, mode=line.text("mode")))
        elif kind is Kind.HANDOFF_END:
            self.handoffs.append(Handoff(t, node, seq, kind, req, line.integer("position")))
        else:
            self.computed.append(Computed(t, node, seq, kind, req))

    def settle(self) -> None:
        """Put everything in order, once all files are read."""
        self.routed.sort(key=_order)
        self.caches.sort(key=_order)
        self.closed.sort(key=_order)
        self.computed.sort(key=_order)
        self.relay_ends.sort(key=_order)
        self.handoffs.sort(key=_order)
        self.device.sort(key=_order)

    @property
    def first_ns(self) -> int | None:
        """Time of the first event of a request; None without one."""
        steps: Iterable[PlaneStep] = chain(self.routed, self.caches, self.computed)
        return min((step.t for step in steps), default=None)

    def route_of(self) -> dict[int, Routed]:
        """The first route of every request."""
        return {one.req: one for one in reversed(self.routed)}


def _order(step: PlaneStep) -> tuple[int, str, int]:
    return step.t, step.node, step.seq
