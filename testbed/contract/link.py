"""What a link is asked to be, in SI integers: the input of the shaping compiler.

One ``LinkSpec`` describes one direction. The compiler turns it into one or two
stages inside a wire namespace, never on an agent's own interface (FACTS: netem on
a TCP sender's egress distorts TCP)::

    a ──veth── [wire: stage 1 = rate + buffer │ stage 2 = delay, jitter, loss] ──veth── b
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from testbed.contract.record import Record
from testbed.contract.sieve import Hold, Sieve


class RandomLoss(Record):
    """Independent loss of each packet."""

    kind: Literal["random"] = "random"
    share: float = Field(ge=0, le=1)


class GilbertElliott(Record):
    """Two-state bursty loss, netem's ``gemodel`` parameters, as shares of 1.

    ``p`` good to bad, ``r`` bad to good, ``bad_loss`` = 1-h, ``good_loss`` = 1-k.
    """

    kind: Literal["gilbert-elliott"] = "gilbert-elliott"
    p: float = Field(ge=0, le=1)
    r: float = Field(ge=0, le=1)
    bad_loss: float = Field(default=1.0, ge=0, le=1)
    good_loss: float = Field(default=0.0, ge=0, le=1)


class FourState(Record):
    """netem's four-state Markov loss: transition shares p13, p31, p32, p23, p14."""

    kind: Literal["four-state"] = "four-state"
    p13: float = Field(ge=0, le=1)
    p31: float = Field(ge=0, le=1)
    p32: float = Field(default=0.0, ge=0, le=1)
    p23: float = Field(default=1.0, ge=0, le=1)
    p14: float = Field(default=0.0, ge=0, le=1)


Loss = Annotated[RandomLoss | GilbertElliott | FourState, Field(discriminator="kind")]


class Distribution(StrEnum):
    """Shape of the delay variation."""

    UNIFORM = "uniform"
    NORMAL = "normal"
    PARETO = "pareto"
    PARETO_NORMAL = "paretonormal"


class Jitter(Record):
    """Delay variation: ``spread_ns`` is netem's jitter (sigma, or half width if uniform)."""

    spread_ns: int = Field(gt=0)
    distribution: Distribution = Distribution.NORMAL
    reorder: bool = False
    """Whether packets may overtake each other, each with a draw of its own. False keeps their
    order: all meet one delay that wanders over time, as departure times (``shaping/wander``)."""


class Slot(Record):
    """netem slotting: packets leave in bursts, ``min_ns`` to ``max_ns`` apart."""

    min_ns: int = Field(gt=0)
    max_ns: int = Field(gt=0)
    packets: int = Field(default=0, ge=0)
    bytes: int = Field(default=0, ge=0)


def _is_none_of_a_fault(value: object) -> bool:
    return not value


class LinkSpec(Record):
    """One direction of a link as requested, in SI integers.

    Attributes:
        rate_bps: bit/s at layer 2 frame size as netem counts it; 0 means unlimited.
        delay_ns: one-way propagation delay, at least 1,000 ns.
        buffer_bytes: bytes the rate stage may queue before it drops from the tail.
        mtu: layer-3 MTU in bytes.
        superframe_bytes: largest skb that may cross (segmentation offload); equal
            to the MTU means one frame per packet, required wherever loss, reordering,
            duplication or corruption act per packet.
        seed: netem generator seed of this direction.
        reorder: share of the frames that overtakes all others that are under way.
        sieves: faults that pick out single packets, by number.
        gate_ns: longest hold that a fault of the plan may ask for; 0 builds no room for one.
        hold: when nothing is sent; needs a gate.
    """

    rate_bps: int = Field(ge=0)
    delay_ns: int = Field(ge=1_000)
    buffer_bytes: int = Field(gt=0)
    mtu: int = Field(default=9000, ge=576, le=65_535)
    superframe_bytes: int = Field(default=65_536, ge=576, le=65_536)
    jitter: Jitter | None = None
    loss: Loss | None = None
    duplicate: float = Field(default=0.0, ge=0, le=1)
    corrupt: float = Field(default=0.0, ge=0, le=1)
    slot: Slot | None = None
    ecn: bool = False
    seed: int = Field(default=0, ge=0, lt=2**64)
    reorder: float = Field(default=0.0, ge=0, le=1, exclude_if=_is_none_of_a_fault)
    sieves: tuple[Sieve, ...] = Field(default=(), exclude_if=_is_none_of_a_fault)
    gate_ns: int = Field(default=0, ge=0, exclude_if=_is_none_of_a_fault)
    hold: Hold | None = Field(default=None, exclude_if=_is_none_of_a_fault)
