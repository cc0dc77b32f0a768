"""What the router knows when it decides: one frozen picture of the cluster for one request.

::

    site A: P RLD ──leg──┐
                         ├── site B: MD      a pool a (P, MD) pair, several pairs a leg
    site C: P RLD ──leg──┘

The picture is an estimate (made from what was sent and reported), never a promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from testbed.contract.role import Role


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What routing may know about a request. Tokens and blocks are emulated ones."""

    req: int
    input_tokens: int
    block_tokens: int
    block_bytes: int
    """Wire bytes of one block."""
    fixed_bytes: int = 0
    """Wire bytes of a transfer beyond its blocks."""
    session: int | None = None

    @property
    def blocks(self) -> int:
        """Blocks of the prompt; the last may be part full."""
        return -(-self.input_tokens // self.block_tokens)

    def hit_rate(self, hit_blocks: int) -> float:
        """Share of the prompt that ``hit_blocks`` cover, in 0..1."""
        return min(1.0, hit_blocks * self.block_tokens / self.input_tokens)

    def uncached_tokens(self, hit_blocks: int) -> int:
        """Tokens that remain to be computed."""
        return max(0, self.input_tokens - hit_blocks * self.block_tokens)

    def wire_bytes(self, hit_blocks: int) -> int:
        """Bytes to an instance that holds ``hit_blocks``; nothing is sent for no block."""
        missing = max(0, self.blocks - hit_blocks)
        return missing * self.block_bytes + self.fixed_bytes if missing else 0


@dataclass(frozen=True, slots=True)
class InstanceView:
    """One instance. ``hit_blocks`` is what it holds of *this* request's prompt."""

    name: str
    role: Role
    site: str
    queued_tokens: int = 0
    active_sequences: int = 0
    hit_blocks: int = 0
    most_sequences: int = 0
    """Admission limit; 0 is no limit."""
    begun_sequences: int = 0
    """Of the active ones, those that P is done with: they take room in its batch."""

    @property
    def load(self) -> int:
        """Work ahead of a new request: tokens at P, sequences elsewhere."""
        return self.queued_tokens if self.role is Role.PREFILL else self.active_sequences

    @property
    def full(self) -> bool:
        """Whether its batch has no room; what still waits for P takes none yet."""
        return 0 < self.most_sequences <= self.begun_sequences


@dataclass(frozen=True, slots=True)
class PoolView:
    """The connection pool of one (P, MD) pair."""

    leg: str
    busy: int
    waiting: int
    size: int
    transfer_ns: int = 0
    """Mean duration of its latest transfers; 0 before the first."""


@dataclass(frozen=True, slots=True)
class LegView:
    """A line between two sites."""

    payload_bps: int
    """Payload bits per second when nobody else sends."""
    used: float = 0.0
    """Estimated share of it in use, 0..1; never clamped, so it may exceed 1."""
    flows: int = 0
    """Transfers under way."""
    rtt_ns: int = 0


Pair = tuple[str, str]
"""Names of a P and an MD."""


@dataclass(frozen=True, slots=True)
class ClusterView:
    """All living instances, the pools and the legs. A pair without a pool has no path."""

    now_ns: int
    prefills: tuple[InstanceView, ...]
    relays: tuple[InstanceView, ...]
    decodes: tuple[InstanceView, ...]
    pools: Mapping[Pair, PoolView] = field(default_factory=dict)
    legs: Mapping[str, LegView] = field(default_factory=dict)

    def reachable(self, prefill: InstanceView) -> tuple[InstanceView, ...]:
        """MDs that this P has a pool to."""
        return tuple([one for one in self.decodes if (prefill.name, one.name) in self.pools])
