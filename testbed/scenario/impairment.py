"""Loss, jitter and slots as files write them, once for two kinds of file.

In a tc profile each value is ``{value: …, source: …}``; in a scenario it is plain.
``V`` stands for how a file wraps a value: ``Sourced[Share]`` or ``Share``.
"""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeAlias, TypeVar

from pydantic import Field

from testbed.contract.link import Distribution
from testbed.contract.record import Record
from testbed.scenario.entry import Count, Line
from testbed.units import Duration, Share, Size

T = TypeVar("T")
ShareT = TypeVar("ShareT")
DurationT = TypeVar("DurationT")
ShapeT = TypeVar("ShapeT")
FlagT = TypeVar("FlagT")
CountT = TypeVar("CountT")
SizeT = TypeVar("SizeT")


class Sourced(Record, Generic[T]):
    """A value with where it comes from: a publication, a measurement, or "chosen: why"."""

    value: T
    source: Line


class RandomLossEntry(Record, Generic[ShareT]):
    """Each frame is lost on its own with this share."""

    kind: Literal["random"]
    share: ShareT


class GilbertElliottEntry(Record, Generic[ShareT]):
    """Bursty loss: ``p`` good to bad, ``r`` bad to good, loss within each state."""

    kind: Literal["gilbert-elliott"]
    p: ShareT
    r: ShareT
    bad_loss: ShareT
    good_loss: ShareT


class FourStateEntry(Record, Generic[ShareT]):
    """netem's four-state Markov loss: transition shares."""

    kind: Literal["four-state"]
    p13: ShareT
    p31: ShareT
    p32: ShareT
    p23: ShareT
    p14: ShareT


class JitterEntry(Record, Generic[DurationT, ShapeT, FlagT]):
    """Delay variation: ``spread`` is netem's jitter, sigma or half width if uniform."""

    spread: DurationT
    distribution: ShapeT
    reorder: FlagT


class SlotEntry(Record, Generic[DurationT, CountT, SizeT]):
    """Packets leave in bursts, ``low`` to ``high`` apart, at most so many at once."""

    low: DurationT
    high: DurationT
    packets: CountT | None = None
    size: SizeT | None = None


SourcedShare: TypeAlias = Sourced[Share]
ProfileLoss: TypeAlias = Annotated[
    RandomLossEntry[SourcedShare]
    | GilbertElliottEntry[SourcedShare]
    | FourStateEntry[SourcedShare],
    Field(discriminator="kind"),
]
ProfileJitter: TypeAlias = JitterEntry[Sourced[Duration], Sourced[Distribution], Sourced[bool]]
ProfileSlot: TypeAlias = SlotEntry[Sourced[Duration], Sourced[Count], Sourced[Size]]

PlainLoss: TypeAlias = Annotated[
    RandomLossEntry[Share] | GilbertElliottEntry[Share] | FourStateEntry[Share],
    Field(discriminator="kind"),
]
PlainJitter: TypeAlias = JitterEntry[Duration, Distribution, bool]
PlainSlot: TypeAlias = SlotEntry[Duration, Count, Size]
