"""tc profiles: what one link does to packets, each number with its source.

A profile describes both directions alike; the round-trip time is split evenly.
A scenario may override any value per class of link (:class:`LinkChoice`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from testbed.contract.record import Record
from testbed.scenario.buffer import Buffer
from testbed.scenario.entry import Line, Name
from testbed.scenario.impairment import (
    PlainJitter,
    PlainLoss,
    PlainSlot,
    ProfileJitter,
    ProfileLoss,
    ProfileSlot,
    Sourced,
)
from testbed.units import Duration, Rate, Share, Size

Segmentation: TypeAlias = Literal["superframe", "frame"]
"""``superframe``: up to 64 KiB cross as one packet (fast; exact rates, no per-frame
fate); ``frame``: one packet per frame, needed where loss or reordering act on each."""

Stages: TypeAlias = Literal["split", "single"]
"""``split``: rate and buffer on one device, delay and loss on the next (the default);
``single``: all in one netem, which is right only without jitter."""

NONE: TypeAlias = Literal["none"]


class Profile(Record):
    """A file of ``tc_profiles/``."""

    name: Name
    description: Line
    rate: Sourced[Rate]
    rtt: Sourced[Duration]
    """Round-trip time of an idle link; half of it each way."""
    buffer: Sourced[Buffer]
    mtu: Sourced[Size]
    segmentation: Sourced[Segmentation]
    stages: Sourced[Stages] = Field(
        default=Sourced[Stages](value="split", source="the testbed's own rule")
    )
    loss: ProfileLoss | None = None
    jitter: ProfileJitter | None = None
    slot: ProfileSlot | None = None
    duplicate: Sourced[Share] | None = None
    corrupt: Sourced[Share] | None = None
    ecn: Sourced[bool] | None = None


class LinkChoice(Record):
    """Overrides of one class of link in a scenario; None keeps the profile's value."""

    profile: Name | None = None
    rate: Rate | None = None
    rtt: Duration | None = None
    buffer: Buffer | None = None
    mtu: Size | None = None
    segmentation: Segmentation | None = None
    stages: Stages | None = None
    loss: PlainLoss | NONE | None = None
    jitter: PlainJitter | NONE | None = None
    slot: PlainSlot | NONE | None = None
    duplicate: Share | None = None
    corrupt: Share | None = None
    ecn: bool | None = None
