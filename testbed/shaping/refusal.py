"""What a link cannot be: requests that are refused before anything is built, with the reason."""

from __future__ import annotations

from testbed.contract.link import (
    Distribution,
    FourState,
    GilbertElliott,
    Jitter,
    LinkSpec,
    RandomLoss,
)
from testbed.errors import PlanError
from testbed.shaping.distribution import SCALE, table_of

ETHERNET_HEADER = 14
LONGEST_SPREAD_NS = 2**31 - 1
"""netem caps larger jitter in silence (sch_netem.c: netem_change)."""
SLOWEST_BPS = 8_000
LONGEST_DELAY_NS = 60_000_000_000
SMALLEST_SHARE = 2**-32
EVERYTHING = RandomLoss(share=1.0)
"""Loss that is the same for frames and superframes: how nothing passes one direction."""


def refuse_unphysical(spec: LinkSpec, subject: str) -> None:
    """Raise PlanError for the first thing that is wrong with ``spec``."""
    for cause, remedy in _causes(spec):
        raise PlanError("shape", subject, cause, remedy)


def _causes(spec: LinkSpec) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if spec.rate_bps % 8 or 0 < spec.rate_bps < SLOWEST_BPS:
        found.append(
            (
                f"a rate of {spec.rate_bps} bit/s: the kernel counts whole bytes per second",
                f"give a multiple of 8 bit/s, at least {SLOWEST_BPS}",
            )
        )
    if spec.rate_bps and spec.buffer_bytes < spec.superframe_bytes + ETHERNET_HEADER:
        found.append(
            (
                f"a buffer of {spec.buffer_bytes} bytes never admits a frame of "
                f"{spec.superframe_bytes + ETHERNET_HEADER}",
                "enlarge the buffer or lower superframe_bytes",
            )
        )
    if spec.delay_ns > LONGEST_DELAY_NS:
        found.append((f"a delay of {spec.delay_ns} ns is over a minute", "lower the delay"))
    found.extend(
        (f"{what} of {share:g} is below the kernel's resolution of 2**-32", "raise it or leave it")
        for what, share in _shares(spec)
        if 0 < share < SMALLEST_SHARE
    )
    if spec.superframe_bytes > spec.mtu:
        found.extend(
            (
                f"{what} acts per packet, but superframes of {spec.superframe_bytes} bytes "
                f"carry several frames of {spec.mtu}",
                "set superframe_bytes to the MTU (segmentation: frame)",
            )
            for what in _per_packet(spec)
        )
    found.extend(_fault_causes(spec))
    if spec.jitter is not None:
        found.extend(_jitter_causes(spec.jitter, spec))
    if spec.slot is not None and spec.slot.min_ns > spec.slot.max_ns:
        found.append(("slot: min exceeds max", "swap them"))
    if spec.slot is not None and max(spec.slot.packets, spec.slot.bytes) > LONGEST_SPREAD_NS:
        found.append(("a slot of 2**31 packets or bytes does not fit the field", "lower it"))
    if spec.slot is not None and spec.jitter is not None:
        found.append(("slot and jitter both decide when a packet leaves", "choose one"))
    if spec.ecn and spec.loss is None:
        found.append(("ecn marks what loss would drop, and there is no loss", "add loss"))
    if isinstance(spec.loss, FourState):
        found.extend(_four_state_causes(spec.loss))
    return found


def _fault_causes(spec: LinkSpec) -> list[tuple[str, str]]:
    """What only faults ask for."""
    found = [
        (
            f"no IP packet is larger than {spec.mtu} bytes, so none is above {sieve.above}",
            f"choose less than {spec.mtu}",
        )
        for sieve in spec.sieves
        if sieve.above >= spec.mtu
    ]
    if spec.hold is not None and spec.gate_ns < spec.hold.stop_ns:
        found.append(("it has no gate for stops as long as these", "build it with one"))
    if spec.gate_ns and spec.jitter is not None and not spec.jitter.reorder:
        found.append(
            (
                "holds and jitter that keeps order both decide when a frame leaves",
                "let jitter reorder, or hold another link",
            )
        )
    return found


def _shares(spec: LinkSpec) -> list[tuple[str, float]]:
    """Every share that the kernel keeps in 32 bits, with its name."""
    found = [("duplication", spec.duplicate), ("corruption", spec.corrupt)]
    found.append(("reordering", spec.reorder))
    found += [(sieve.kind, sieve.share) for sieve in spec.sieves]
    match spec.loss:
        case RandomLoss() as loss:
            found.append(("loss", loss.share))
        case GilbertElliott() as loss:
            found += [("p", loss.p), ("r", loss.r), ("good_loss", loss.good_loss)]
        case FourState() as loss:
            found += [(name, getattr(loss, name)) for name in ("p13", "p31", "p32", "p23", "p14")]
        case None:
            pass
    return found


def _per_packet(spec: LinkSpec) -> list[str]:
    wanted = (
        ("loss", spec.loss not in (None, EVERYTHING)),
        ("duplication", spec.duplicate > 0),
        ("corruption", spec.corrupt > 0),
        ("reordering jitter", spec.jitter is not None and spec.jitter.reorder),
        ("slotting", spec.slot is not None),
        ("reordering", spec.reorder > 0),
        ("an MTU", any(sieve.above for sieve in spec.sieves)),
        ("marking", any(sieve.marks for sieve in spec.sieves)),
    )
    return [name for name, on in wanted if on]


def _jitter_causes(jitter: Jitter, spec: LinkSpec) -> list[tuple[str, str]]:
    if jitter.spread_ns > spec.delay_ns:
        return [
            (
                f"jitter of {jitter.spread_ns} ns exceeds the delay of {spec.delay_ns} ns",
                "a packet cannot arrive before it was sent: lower the jitter",
            )
        ]
    if jitter.spread_ns > LONGEST_SPREAD_NS:
        return [("jitter over 2.147 s does not fit the kernel's field", "lower the jitter")]
    lowest = -min(table_of(jitter.distribution), default=-SCALE) / SCALE
    if lowest * jitter.spread_ns > spec.delay_ns:
        return [
            (
                f"{jitter.distribution.value} jitter reaches {lowest:.2f} x {jitter.spread_ns} ns "
                f"below the mean, more than the delay of {spec.delay_ns} ns: the "
                "distribution would be cut at zero",
                f"lower the jitter below {int(spec.delay_ns / lowest)} ns"
                + ("" if jitter.distribution is Distribution.UNIFORM else " or use uniform"),
            )
        ]
    return []


def _four_state_causes(loss: FourState) -> list[tuple[str, str]]:
    pairs = (("p13 + p14", loss.p13 + loss.p14), ("p31 + p32", loss.p31 + loss.p32))
    return [
        (f"{name} is {total:g}, but shares out of one state add up to at most 1", "lower them")
        for name, total in pairs
        if total > 1
    ]
