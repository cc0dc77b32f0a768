"""The compiler: one direction of a link as requested → what each stage must hold.

::

    ──▶ [ police: buffer in bytes ][ netem: rate ] ──▶ [ netem: delay, loss, … ] ──▶
        └────── rate stage (inner device) ───────┘     └ delay stage (wire device) ┘
    with jitter that keeps order, the delay stage is   [ program: departure time ]
                                                       [ netem: least delay, loss, … ][ fq ]
    with a gate that faults may close                  [ program: stops ][ netem ][ fq ]
    faults of single packets come before the netem     [ programs: drop, mark, count ][ netem ]

Why netem for the rate: it serialises every packet exactly (departure = departure of
the packet before + length / rate), where tbf and htb let a bucketful leave at once
after every pause. Measured in the guest: a burst of 3,000 frames of 9,014 B leaves netem
at 10.0007 and 401 Gbit/s from the first frame on; tbf and htb send the first ten at 33 and
49 Gbit/s with a bucket of one superframe, at no time at all with 1 ms, and tbf with the
small bucket passes superframes at 302 of 400 Gbit/s.

netem's ``limit`` counts packets, so the buffer is bounded in bytes by a policer in front
of it: a token bucket of ``buffer`` bytes refilled at the link's rate admits exactly what
a tail-drop queue of ``buffer`` bytes served at that rate has room for.

Rate and jitter never share a qdisc (netem then schedules behind the last packet and the
delay becomes a running maximum). What cannot be honoured is refused with PlanError.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address

from testbed.contract.link import FourState, GilbertElliott, Jitter, LinkSpec, Loss, RandomLoss
from testbed.contract.sieve import Sieve
from testbed.errors import PlanError
from testbed.shaping.distribution import table_of
from testbed.shaping.qdisc import (
    U32_MAX,
    Fq,
    Gate,
    GeModel,
    GiModel,
    Netem,
    PacketFilter,
    Police,
    QdiscSpec,
    SlotConfig,
)
from testbed.shaping.ratespec import NS, TICK_NS, Reciprocal, exact_ns
from testbed.shaping.refusal import refuse_unphysical
from testbed.shaping.wander import wander

SMALLEST_FRAME = 42
"""Bytes: Ethernet header + the smallest IP payload seen on a veth (no padding there)."""
LARGEST_FRAME = 70_000
"""Bytes: a 64 KiB superframe counted with the headers of all its segments."""
PACKET_MARGIN = 1_000
UNBOUNDED = 2**31 - 1
"""Packet limit where no rate bounds what can be in flight: never the cause of a drop."""


@dataclass(frozen=True, slots=True)
class StagePair:
    """What sits on the inner device (rate) and on the outgoing wire device (delay, sieves)."""

    rate: tuple[QdiscSpec, ...]
    delay: tuple[QdiscSpec, ...]
    sieves: tuple[PacketFilter, ...] = ()


def compile_link(spec: LinkSpec, subject: str = "link") -> StagePair:
    """Both stages of one direction. PlanError names ``subject`` and the reason."""
    refuse_unphysical(spec, subject)
    return StagePair(
        rate=_rate_stage(spec, subject),
        delay=_delay_stage(spec, subject),
        sieves=tuple(_filter(sieve, spec.seed) for sieve in spec.sieves),
    )


def share_to_u32(share: float) -> int:
    """A share of 1 in netem's fixed point, as iproute2 rounds it."""
    return round(share * U32_MAX)


def _rate_stage(spec: LinkSpec, subject: str) -> tuple[QdiscSpec, ...]:
    if spec.rate_bps == 0:
        return ()
    rate = spec.rate_bps // 8
    ticks = round(spec.buffer_bytes * NS / rate / TICK_NS)
    if not 0 < ticks <= U32_MAX:
        raise PlanError(
            "compile",
            subject,
            f"a buffer of {spec.buffer_bytes} bytes is {ticks} ticks of 64 ns at "
            f"{spec.rate_bps} bit/s; the kernel holds 1 to {U32_MAX}",
            "choose a buffer that drains in less than 274 s",
        )
    police = Police(rate=policer_rate(rate), burst_ns=ticks * TICK_NS)
    limit = _packets(spec.buffer_bytes, subject)
    return (police, Netem(limit=limit, rate=rate, seed=spec.seed))


def _filter(sieve: Sieve, seed: int) -> PacketFilter:
    """Each direction draws from a seed of its own."""
    flows = sieve.flows
    return PacketFilter(
        number=sieve.number,
        marks=sieve.marks,
        opens=sieve.kind == "syn-loss",
        between=None
        if flows.between is None
        else (address_word(flows.between[0]), address_word(flows.between[1])),
        port=flows.port,
        above=sieve.above,
        threshold=share_to_u32(sieve.share),
        seed=(sieve.seed ^ seed) if sieve.share < 1 else 0,
    )


def address_word(address: str) -> int:
    """An IPv4 address as x86-64 reads it from a packet."""
    return int.from_bytes(IPv4Address(address).packed, "little")


def _delay_stage(spec: LinkSpec, subject: str) -> tuple[QdiscSpec, ...]:
    if spec.gate_ns:
        hold = spec.hold
        gate = Gate(
            stop_ns=hold.stop_ns if hold else 0,
            each_ns=hold.each_ns if hold else 0,
            rate=spec.rate_bps // 8,
            delay_ns=spec.delay_ns,
        )
        netem = _delay_netem(spec, subject, spec.delay_ns, spec.jitter)
        return (gate, netem, Fq(limit=UNBOUNDED))
    if spec.jitter is None or spec.jitter.reorder:
        return (_delay_netem(spec, subject, spec.delay_ns, spec.jitter),)
    pacer = wander(spec.delay_ns, spec.jitter, spec.seed)
    netem = _delay_netem(spec, subject, min(pacer.delays_ns), None)
    return (pacer, netem, Fq(limit=netem.limit))


def _delay_netem(spec: LinkSpec, subject: str, latency_ns: int, drawn: Jitter | None) -> Netem:
    """The netem of the delay stage; ``drawn`` is jitter that netem draws per packet."""
    spread = spec.jitter.spread_ns if spec.jitter else 0
    longest = spec.delay_ns + 4 * spread + (spec.slot.max_ns if spec.slot else 0) + spec.gate_ns
    in_flight = spec.rate_bps * longest // (8 * NS) + 1
    loss = spec.loss
    return Netem(
        limit=_packets(in_flight, subject) if spec.rate_bps else UNBOUNDED,
        latency_ns=latency_ns,
        jitter_ns=drawn.spread_ns if drawn else 0,
        table=table_of(drawn.distribution) if drawn else (),
        loss=share_to_u32(loss.share) if isinstance(loss, RandomLoss) else 0,
        loss_model=_loss_model(loss),
        duplicate=share_to_u32(spec.duplicate),
        corrupt=share_to_u32(spec.corrupt),
        gap=1 if spec.reorder else 0,
        reorder=share_to_u32(spec.reorder),
        ecn=spec.ecn,
        slot=SlotConfig(spec.slot.min_ns, spec.slot.max_ns, spec.slot.packets, spec.slot.bytes)
        if spec.slot
        else None,
        seed=spec.seed,
    )


def _packets(size: int, subject: str) -> int:
    """Packet limit for ``size`` bytes of the smallest frames, twice over, with a margin."""
    limit = 2 * (size // SMALLEST_FRAME) + PACKET_MARGIN
    if limit > UNBOUNDED:
        raise PlanError(
            "compile",
            subject,
            f"{size} bytes in flight need a limit of {limit} packets; netem holds {UNBOUNDED}",
            "lower the rate, the delay or the buffer",
        )
    return limit


def _loss_model(loss: Loss | None) -> GiModel | GeModel | None:
    match loss:
        case GilbertElliott():
            return GeModel(
                p=share_to_u32(loss.p),
                r=share_to_u32(loss.r),
                h=share_to_u32(1 - loss.bad_loss),
                k1=share_to_u32(loss.good_loss),
            )
        case FourState():
            return GiModel(
                p13=share_to_u32(loss.p13),
                p31=share_to_u32(loss.p31),
                p32=share_to_u32(loss.p32),
                p14=share_to_u32(loss.p14),
                p23=share_to_u32(loss.p23),
            )
        case _:
            return None


@lru_cache
def policer_rate(rate: int) -> int:
    """The policer's rate (byte/s) whose rounding matches netem's at ``rate``.

    The policer multiplies by a truncated reciprocal and so may find a packet 1 ns
    cheaper than netem does; over a long busy period its idea of the queue would run
    away from the queue. A rate that is a few byte/s lower makes both floors equal
    for every length; the closest such rate is taken (the least wrong if none is equal).
    """
    best, fewest = rate, LARGEST_FRAME
    for exponent in range(-1, max(1, (rate >> 17).bit_length())):
        candidate = rate if exponent < 0 else rate - (1 << exponent)
        wrong = _mismatches(candidate, rate, fewest)
        if wrong == 0:
            return candidate
        if wrong < fewest:
            best, fewest = candidate, wrong
    return best


def _mismatches(candidate: int, rate: int, enough: int) -> int:
    if candidate <= 0:
        return enough
    reciprocal, wrong = Reciprocal.of(candidate), 0
    for length in range(SMALLEST_FRAME, LARGEST_FRAME):
        if reciprocal.time_ns(length) != exact_ns(length, rate):
            wrong += 1
            if wrong >= enough:
                break
    return wrong
