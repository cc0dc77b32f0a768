"""What physics or the kernel cannot do with a link, and the reason.

Refused while loading, before anything is planned. Facts about netem are those of
Linux 6.12, net/sched/sch_netem.c.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from testbed.contract.link import Jitter, Loss, Slot
from testbed.scenario.profile import Stages

SUPERFRAME_BYTES = 65_536
MIN_DELAY_NS = 1_000
MIN_MTU = 576
MAX_MTU = 65_535
MIN_BUFFER_PACKETS = 2

SINGLE_JITTER = (
    "single puts rate and jitter into one netem, which turns the delay into a running maximum "
    "(10±2 ms becomes 11.7±0.17 ms); use split"
)
SINGLE = (
    "single puts rate, buffer and delay into one netem, whose one limit must then hold bandwidth "
    "x delay in flight as well as the buffer, so no buffer can be honoured; use split"
)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a link cannot be: the key that is to blame and the sentence."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """A link as asked for, in integers, before it is known to be possible."""

    rate_bps: int
    rtt_ns: int
    buffer_bytes: int
    mtu: int
    superframe_bytes: int
    stages: Stages
    jitter: Jitter | None
    loss: Loss | None
    duplicate: float
    corrupt: float
    slot: Slot | None
    ecn: bool

    @property
    def delay_ns(self) -> int:
        """One way."""
        return self.rtt_ns // 2

    @property
    def per_frame(self) -> tuple[str, ...]:
        """What decides over each frame on its own."""
        acting = (
            ("loss", self.loss is not None),
            ("jitter with reorder", self.jitter is not None and self.jitter.reorder),
            ("duplicate", self.duplicate > 0),
            ("corrupt", self.corrupt > 0),
            ("slot", self.slot is not None),
        )
        return tuple(name for name, acts in acting if acts)


def reasons_against(wanted: Wanted) -> Iterator[Reason]:
    """Every reason why ``wanted`` cannot be built."""
    yield from _rate_and_delay(wanted)
    yield from _buffer(wanted)
    yield from _variation(wanted)
    if wanted.stages == "single":
        yield Reason("stages", SINGLE_JITTER if wanted.jitter is not None else SINGLE)
    if wanted.per_frame and wanted.superframe_bytes > wanted.mtu:
        yield Reason(
            "segmentation",
            f"{', '.join(wanted.per_frame)} acts on each frame, but superframes of "
            f"{wanted.superframe_bytes} bytes carry several; set segmentation: frame",
        )
    if wanted.ecn and wanted.loss is None:
        yield Reason("ecn", "marks what loss would drop, and there is no loss")


def _rate_and_delay(wanted: Wanted) -> Iterator[Reason]:
    if wanted.rate_bps == 0:
        yield Reason("rate", "is 0; every link of the testbed has a rate")
    elif wanted.rate_bps % 8:
        yield Reason("rate", "must be a whole number of bytes per second (8 bit/s)")
    if wanted.rtt_ns % 2:
        yield Reason("rtt", "must be an even number of ns: half of it is each way")
    if wanted.delay_ns < MIN_DELAY_NS:
        yield Reason(
            "rtt",
            "is below 2 us; every link has at least 1 us each way, or TCP_INFO would report a "
            "round-trip time of 0",
        )
    if not MIN_MTU <= wanted.mtu <= MAX_MTU:
        yield Reason("mtu", f"must be {MIN_MTU} to {MAX_MTU} bytes")


def _buffer(wanted: Wanted) -> Iterator[Reason]:
    smallest = MIN_BUFFER_PACKETS * wanted.superframe_bytes
    if wanted.buffer_bytes < smallest:
        yield Reason(
            "buffer",
            f"{wanted.buffer_bytes} bytes hold fewer than {MIN_BUFFER_PACKETS} packets of "
            f"{wanted.superframe_bytes} bytes; use at least {smallest} B"
            + (" or segmentation: frame" if wanted.superframe_bytes > wanted.mtu else ""),
        )


def _variation(wanted: Wanted) -> Iterator[Reason]:
    jitter, slot = wanted.jitter, wanted.slot
    if jitter is not None and jitter.spread_ns > wanted.delay_ns:
        yield Reason(
            "jitter",
            f"spread {jitter.spread_ns} ns exceeds the one-way delay {wanted.delay_ns} ns: packets "
            "would arrive before they were sent; lower the spread or raise rtt",
        )
    if slot is not None and slot.min_ns > slot.max_ns:
        yield Reason("slot", "needs low <= high")
    if jitter is not None and slot is not None:
        yield Reason("slot", "and jitter both set departure times; keep one")
