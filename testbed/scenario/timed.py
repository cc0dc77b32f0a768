"""When a scenario's fault is in force, and on what: what all kinds of faults have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator

from testbed.contract.fault import AgentEffect, Effect
from testbed.contract.record import Record
from testbed.scenario.entry import Count, Name
from testbed.units import Duration, Share

FaultName = Annotated[
    str, StringConstraints(strict=True, pattern=r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$")
]
"""Without dots, which part the names of metrics."""
_ALWAYS = Share(Share.MAXIMUM)


def key(meaning: str, default: object = ...) -> Any:
    """A key with what editors and ``testbed fault show`` say of it."""
    return Field(default=default, description=meaning)


Names: TypeAlias = Name | Annotated[tuple[Name, ...], Field(min_length=1, max_length=1_000)]


class Timed(Record):
    """When a fault is in force."""

    EXAMPLE: ClassVar[str]
    """As a scenario writes it."""
    INSTANT: ClassVar[bool] = False
    """Whether it is over as soon as it came."""

    name: FaultName | None = key("how the record calls it; left out, its kind and number", None)
    at: Duration = key("when it begins, after the barrier")
    duration: Duration | None = key("how long; left out, to the end of the run", None)
    every: Duration | None = key("it comes back so often, from begin to begin", None)
    times: Count | None = key("how often in all; goes with every", None)
    probability: Share = key("chance of each time on its own, from the run's seed", _ALWAYS)

    @model_validator(mode="after")
    def _comes_and_goes(self) -> Self:
        if self.duration is not None and self.duration.ns == 0:
            raise ValueError("duration must be longer than 0 ns; left out, it is to the end")
        if (self.every is None) != (self.times is None):
            raise ValueError("every and times go together: how far apart, and how often")
        if self.INSTANT:
            if self.duration is not None:
                raise ValueError("it is over at once: leave duration out")
            if self.every is not None and self.every.ns < 2:
                raise ValueError("every must be longer than 1 ns")
        elif self.every is not None and (
            self.duration is None or self.every.ns <= self.duration.ns
        ):
            raise ValueError("every needs a duration, and must be longer than it")
        if self.probability.steps == 0:
            raise ValueError("probability must be above 0 %, or the fault never comes")
        return self


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


class OnAgents(Timed):
    """A fault inside agents."""

    node: Names = key("an agent of the plan, or a list of agents")

    @abstractmethod
    def effect(self) -> AgentEffect:
        """What the agent does to itself, in SI integers."""
