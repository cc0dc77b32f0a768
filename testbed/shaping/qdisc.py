"""Queueing disciplines as the kernel holds them: every field in the kernel's own unit.

These are what is sent and what is read back, so equality of two values is equality
of two configurations. Rates are bytes per second, times nanoseconds, probabilities
32-bit fixed point (0 is never, 2**32 - 1 is always).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

U32_MAX = 2**32 - 1


@dataclass(frozen=True, slots=True)
class GiModel:
    """Four-state Markov loss (NETEM_LOSS_GI), fields in the order of tc_netem_gimodel."""

    p13: int
    p31: int
    p32: int
    p14: int
    p23: int


@dataclass(frozen=True, slots=True)
class GeModel:
    """Gilbert-Elliott loss (NETEM_LOSS_GE): ``h`` is 1 - loss when bad, ``k1`` loss when good."""

    p: int
    r: int
    h: int
    k1: int


@dataclass(frozen=True, slots=True)
class SlotConfig:
    """Release in bursts (tc_netem_slot); ``dist_*`` only with a slot distribution table."""

    min_delay_ns: int
    max_delay_ns: int
    max_packets: int = 0
    max_bytes: int = 0
    dist_delay_ns: int = 0
    dist_jitter_ns: int = 0


@dataclass(frozen=True, slots=True)
class Netem:
    """sch_netem. ``limit`` counts packets (skbs), not bytes.

    ``table`` is the delay distribution: the kernel takes it but never dumps it, so it
    takes no part in comparisons; calibration proves it packet by packet instead.
    """

    kind: ClassVar[str] = "netem"

    limit: int
    latency_ns: int = 0
    jitter_ns: int = 0
    rate: int = 0
    packet_overhead: int = 0
    cell_size: int = 0
    cell_overhead: int = 0
    loss: int = 0
    loss_model: GiModel | GeModel | None = None
    duplicate: int = 0
    corrupt: int = 0
    gap: int = 0
    reorder: int = 0
    delay_correlation: int = 0
    loss_correlation: int = 0
    duplicate_correlation: int = 0
    reorder_correlation: int = 0
    corrupt_correlation: int = 0
    ecn: bool = False
    slot: SlotConfig | None = None
    seed: int = 0
    table: tuple[int, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Tbf:
    """sch_tbf: a token bucket of ``burst`` bytes before a queue of ``limit`` bytes."""

    kind: ClassVar[str] = "tbf"

    rate: int
    burst: int
    limit: int


@dataclass(frozen=True, slots=True)
class Htb:
    """sch_htb's root: where unclassified packets go."""

    kind: ClassVar[str] = "htb"

    default_class: int
    rate_to_quantum: int = 10
    direct_queue: int = 1000


@dataclass(frozen=True, slots=True)
class HtbClass:
    """One HTB class; bursts are nanoseconds at the respective rate, as the kernel keeps them."""

    kind: ClassVar[str] = "htb"

    rate: int
    ceil: int
    burst_ns: int
    ceil_burst_ns: int
    quantum: int
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Police:
    """act_police: drops what does not fit a bucket of ``burst_ns`` x ``rate`` bytes."""

    kind: ClassVar[str] = "police"

    rate: int
    burst_ns: int
    largest: int = U32_MAX


@dataclass(frozen=True, slots=True)
class Fq:
    """sch_fq as a waiting room: one flow, first in first out, until each departure time."""

    kind: ClassVar[str] = "fq"

    limit: int
    orphan_mask: int = 0
    timer_slack_ns: int = 0
    paces_sockets: bool = False


@dataclass(frozen=True, slots=True)
class Pacer:
    """A program that sets departure times: the delay over time, in bins of 2**shift ns.

    ``delays_ns`` has a power of two of entries and repeats; see ``wander``.
    """

    kind: ClassVar[str] = "bpf"

    shift: int
    delays_ns: tuple[int, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class PacketFilter:
    """A program that drops or marks the packets that it picks out, and counts them.

    Attributes:
        number: where it stands among others; the first that drops a packet is the last to see it.
        between: two addresses as the packet has them, as 32-bit numbers of this machine.
        threshold: share of those that fit, in 32-bit fixed point.
    """

    kind: ClassVar[str] = "bpf"

    number: int
    marks: bool = False
    opens: bool = False
    """Only TCP segments with SYN."""
    between: tuple[int, int] | None = None
    port: int | None = None
    above: int = 0
    threshold: int = U32_MAX
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Gate:
    """A program that lets frames begin only outside of stops, one behind the other at ``rate``.

    ``stop_ns`` 0: it is open. ``delay_ns`` is that of the netem below it.
    """

    kind: ClassVar[str] = "bpf"

    stop_ns: int
    each_ns: int
    rate: int
    delay_ns: int


QdiscSpec: TypeAlias = Netem | Tbf | Htb | HtbClass | Police | Fq | Pacer | PacketFilter | Gate
