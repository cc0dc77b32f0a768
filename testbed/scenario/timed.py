"""When a scenario's fault is in force, and on what: what all kinds of faults have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator

from testbed.contract.fault import Effect
from testbed.contract.record import Record
from testbed.scenario.entry import Count, Name
from testbed.units import Duration, Share

FaultName = Annotated[
    str, StringConstraints(strict=True, pattern=r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$")
]
"""Without dots, which part the names of metrics."""
ALWAYS = Share(Share.MAXIMUM)


def key(meaning: str, default: object = ...) -> Any:
    """A key with what editors and ``testbed fault show`` say of it."""
    return Field(default=default, description=meaning)


Names: TypeAlias = Name | Annotated[tuple[Name, ...], Field(min_length=1, max_length=1_000)]


class When(Record):
    """The progress of one transfer, as its sender sees it."""

    pair: tuple[Name, Name] = key("the sender of KV and its receiver: [p1, md1]")
    transfer: Count = key("which of the pair's transfers, from 1, in the order of their begins")
    progress: Share = key("how much of its bytes is on the wire")


class Timed(Record):
    """When a fault is in force."""

    EXAMPLE: ClassVar[str]
    """As a scenario writes it."""
    INSTANT: ClassVar[bool] = False
    """Whether it is over at once, so that it takes no duration."""

    name: FaultName | None = key("how the record calls it; left out, its kind and number", None)
    at: Duration | None = key("when it begins, after the barrier; or when", None)
    when: When | None = key("what it waits for: pair, transfer and progress; or at", None)
    duration: Duration | None = key("how long; left out, to the end of the run", None)
    every: Duration | None = key("it comes back so often, from begin to begin", None)
    times: Count | None = key("how often in all; goes with every", None)
    probability: Share = key("chance of each time on its own, from the run's seed", ALWAYS)

    @model_validator(mode="after")
    def _comes_and_goes(self) -> Self:
        if (self.at is None) == (self.when is None):
            raise ValueError("give at or when: a time after the barrier, or what it waits for")
        if self.INSTANT and self.duration is not None:
            raise ValueError("it is over at once: leave duration out")
        if self.duration is not None and self.duration.ns == 0:
            raise ValueError("duration must be longer than 0 ns; left out, it is to the end")
        if (self.every is None) != (self.times is None):
            raise ValueError("every and times go together: how far apart, and how often")
        if self.INSTANT and self.every is not None and self.every.ns < 2:
            raise ValueError("every must be longer than 1 ns")
        lasts_ns = self.lasts_ns
        if self.every is not None and (lasts_ns is None or self.every.ns <= lasts_ns):
            raise ValueError("every needs a duration, and must be longer than it")
        if self.probability.steps == 0:
            raise ValueError("probability must be above 0 %, or the fault never comes")
        return self

    @property
    def lasts_ns(self) -> int | None:
        """How long each time; None to the end of the run."""
        if self.INSTANT:
            return 1
        return None if self.duration is None else self.duration.ns


class OnLinks(Timed):
    """A fault of links."""

    link: Names = key("a link of the plan, a class of links, or a list of such names")
    direction: Literal["both", "forward", "backward"] = key(
        "both, or forward (from the first end that the plan lists to the second) or backward",
        "both",
    )

    @abstractmethod
    def effect(self) -> Effect:
        """What it does to one direction, in SI integers."""


class OnNodes(Timed):
    """A fault of nodes."""

    node: Names = key("a node of the plan, or a list of nodes")
