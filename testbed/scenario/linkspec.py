"""A profile and its overrides become one ``LinkSpec``, or reasons why it cannot be."""

from __future__ import annotations

from testbed.contract.link import (
    FourState,
    GilbertElliott,
    Jitter,
    LinkSpec,
    Loss,
    RandomLoss,
    Slot,
)
from testbed.scenario.impairment import (
    FourStateEntry,
    GilbertElliottEntry,
    PlainJitter,
    PlainLoss,
    PlainSlot,
    ProfileJitter,
    ProfileLoss,
    ProfileSlot,
    RandomLossEntry,
    Sourced,
)
from testbed.scenario.linkcheck import SUPERFRAME_BYTES, Reason, Wanted, reasons_against
from testbed.scenario.profile import LinkChoice, Profile
from testbed.units import Share


def compose(profile: Profile, choice: LinkChoice) -> LinkSpec | tuple[Reason, ...]:
    """The link that ``profile`` describes after ``choice``; seed 0.

    Returns:
        The spec of one direction (both are alike), or every reason against it.
    """
    rate_bps = (choice.rate or profile.rate.value).bps
    rtt_ns = (choice.rtt or profile.rtt.value).ns
    mtu = (choice.mtu or profile.mtu.value).bytes
    segmentation = choice.segmentation or profile.segmentation.value
    wanted = Wanted(
        rate_bps=rate_bps,
        rtt_ns=rtt_ns,
        buffer_bytes=(choice.buffer or profile.buffer.value).bytes(rate_bps, rtt_ns),
        mtu=mtu,
        superframe_bytes=SUPERFRAME_BYTES if segmentation == "superframe" else mtu,
        stages=choice.stages or profile.stages.value,
        jitter=_jitter(profile, choice),
        loss=_loss(profile, choice),
        duplicate=_share(profile.duplicate, choice.duplicate),
        corrupt=_share(profile.corrupt, choice.corrupt),
        slot=_slot(profile, choice),
        ecn=choice.ecn if choice.ecn is not None else bool(profile.ecn and profile.ecn.value),
    )
    reasons = tuple(reasons_against(wanted))
    if reasons:
        return reasons
    return LinkSpec(
        rate_bps=wanted.rate_bps,
        delay_ns=wanted.delay_ns,
        buffer_bytes=wanted.buffer_bytes,
        mtu=wanted.mtu,
        superframe_bytes=wanted.superframe_bytes,
        jitter=wanted.jitter,
        loss=wanted.loss,
        duplicate=wanted.duplicate,
        corrupt=wanted.corrupt,
        slot=wanted.slot,
        ecn=wanted.ecn,
    )


def _share(given: Sourced[Share] | None, override: Share | None) -> float:
    if override is not None:
        return override.fraction
    return given.value.fraction if given is not None else 0.0


def _loss(profile: Profile, choice: LinkChoice) -> Loss | None:
    entry: ProfileLoss | PlainLoss | None = profile.loss
    if choice.loss == "none":
        return None
    if choice.loss is not None:
        entry = choice.loss
    return None if entry is None else plain_loss(entry)


def plain_loss(entry: ProfileLoss | PlainLoss) -> Loss:
    """A loss model as files write it, as plain shares."""
    match entry:
        case RandomLossEntry():
            return RandomLoss(share=_plain(entry.share))
        case GilbertElliottEntry():
            return GilbertElliott(
                p=_plain(entry.p),
                r=_plain(entry.r),
                bad_loss=_plain(entry.bad_loss),
                good_loss=_plain(entry.good_loss),
            )
        case FourStateEntry():
            return FourState(
                p13=_plain(entry.p13),
                p31=_plain(entry.p31),
                p32=_plain(entry.p32),
                p23=_plain(entry.p23),
                p14=_plain(entry.p14),
            )


def _plain(share: Share | Sourced[Share]) -> float:
    return share.fraction if isinstance(share, Share) else share.value.fraction


def _jitter(profile: Profile, choice: LinkChoice) -> Jitter | None:
    if choice.jitter == "none":
        return None
    if choice.jitter is not None:
        return plain_jitter(choice.jitter)
    return _sourced_jitter(profile.jitter) if profile.jitter is not None else None


def plain_jitter(entry: PlainJitter) -> Jitter:
    """Jitter as a scenario writes it, in nanoseconds."""
    return Jitter(spread_ns=entry.spread.ns, distribution=entry.distribution, reorder=entry.reorder)


def _sourced_jitter(entry: ProfileJitter) -> Jitter:
    return Jitter(
        spread_ns=entry.spread.value.ns,
        distribution=entry.distribution.value,
        reorder=entry.reorder.value,
    )


def _slot(profile: Profile, choice: LinkChoice) -> Slot | None:
    if choice.slot == "none":
        return None
    if choice.slot is not None:
        return _plain_slot(choice.slot)
    return _sourced_slot(profile.slot) if profile.slot is not None else None


def _plain_slot(entry: PlainSlot) -> Slot:
    return Slot(
        min_ns=entry.low.ns,
        max_ns=entry.high.ns,
        packets=entry.packets or 0,
        bytes=entry.size.bytes if entry.size is not None else 0,
    )


def _sourced_slot(entry: ProfileSlot) -> Slot:
    return Slot(
        min_ns=entry.low.value.ns,
        max_ns=entry.high.value.ns,
        packets=entry.packets.value if entry.packets is not None else 0,
        bytes=entry.size.value.bytes if entry.size is not None else 0,
    )
