"""Faults of a plan: what is done to which link or node, and when. SI integers.

Times are emulated nanoseconds since the barrier. A fault that comes and goes has several spans;
which of its chances come true is drawn when planning, so that the plan says it all.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from testbed.contract.ailment import AgentEffect
from testbed.contract.link import Jitter, Loss
from testbed.contract.record import Record
from testbed.contract.sieve import Hold, Sieve
from testbed.contract.trigger import Trigger


class Down(Record):
    """Nothing passes; what is queued is lost. Neither end loses its carrier."""

    kind: Literal["down"] = "down"


class SlowRate(Record):
    """At most this rate."""

    kind: Literal["rate"] = "rate"
    rate_bps: int = Field(gt=0)


class AddedDelay(Record):
    """So much later, each way that it acts."""

    kind: Literal["delay"] = "delay"
    delay_ns: int = Field(gt=0)


class AddedJitter(Record):
    """The delay varies, on top of what it does anyway."""

    kind: Literal["jitter"] = "jitter"
    jitter: Jitter


class AddedLoss(Record):
    """Frames are lost, on top of those that are lost anyway."""

    kind: Literal["loss"] = "loss"
    loss: Loss


class Duplication(Record):
    """This share of the frames arrives twice."""

    kind: Literal["duplicate"] = "duplicate"
    share: float = Field(gt=0, le=1)


class Corruption(Record):
    """One bit of this share of the frames is flipped."""

    kind: Literal["corrupt"] = "corrupt"
    share: float = Field(gt=0, le=1)


class Reordering(Record):
    """This share of the frames overtakes all others that are under way."""

    kind: Literal["reorder"] = "reorder"
    share: float = Field(gt=0, le=1)


Effect = Annotated[
    Down | SlowRate | AddedDelay | AddedJitter | AddedLoss | Duplication | Corruption
    | Reordering | Sieve | Hold,
    Field(discriminator="kind"),
]  # fmt: skip
"""What a fault does to one direction of a link."""


class Span(Record):
    """When a fault is in force; without an end, to the end of the run."""

    begin_ns: int = Field(ge=0)
    end_ns: int | None = Field(default=None, gt=0)

    def overlaps(self, other: Span) -> bool:
        """Whether both are in force at one moment. One that ends when the other begins is not."""
        starts_in_time = other.end_ns is None or self.begin_ns < other.end_ns
        return starts_in_time and (self.end_ns is None or other.begin_ns < self.end_ns)


def _is_none(trigger: Trigger | None) -> bool:
    return trigger is None


class Fault(Record):
    """What all faults have.

    Attributes:
        name: unique in its plan.
        place: where the scenario says so, ``file:line``.
        spans: in order of time, disjoint; none where every chance was missed.
    """

    name: str
    place: str = ""
    spans: tuple[Span, ...]
    trigger: Trigger | None = Field(default=None, exclude_if=_is_none)
    """What it waits for; spans then count from there, and else from the barrier."""

    def moved(self, by_ns: int) -> tuple[Span, ...]:
        """Its spans so much later."""
        return tuple(
            Span(
                begin_ns=span.begin_ns + by_ns,
                end_ns=None if span.end_ns is None else span.end_ns + by_ns,
            )
            for span in self.spans
        )


class LinkFault(Fault):
    """A fault of links; with others on one link it acts together, in any order."""

    target: Literal["link"] = "link"
    links: tuple[str, ...] = Field(min_length=1)
    forward: bool
    backward: bool
    effect: Effect

    @property
    def cuts(self) -> bool:
        """Whether it takes its links down in both directions."""
        return isinstance(self.effect, Down) and self.forward and self.backward


class NodeFault(Fault):
    """A fault of nodes: their programs stand still or end, or they lose their links."""

    target: Literal["node"] = "node"
    nodes: tuple[str, ...] = Field(min_length=1)
    act: Literal["pause", "kill", "restart", "disconnect"]


class AgentFault(Fault):
    """A fault inside agents, which apply it themselves and say so in their own record."""

    target: Literal["agent"] = "agent"
    nodes: tuple[str, ...] = Field(min_length=1)
    effect: AgentEffect


class ResetFault(Fault):
    """Established TCP connections of nodes end at once; each of its spans is an instant."""

    target: Literal["connections"] = "connections"
    nodes: tuple[str, ...] = Field(min_length=1)
    peer: str | None = None
    """Only connections with this address."""
    port: int | None = Field(default=None, gt=0, lt=65_536)
    """Only those with this port at either end."""


class TrafficFault(Fault):
    """Further TCP traffic from some nodes to one, for as long as it is in force.

    Attributes:
        nodes: who sends.
        source_addresses: of each, the address that it sends from.
        port: on which the receiver listens for the first of them; the next ones follow.
        source_port: of the first connection of all; the next ones follow.
        flows: connections of each.
        on_ns, off_ns: means of exponential bursts and gaps, as built; 0 sends all the time.
    """

    target: Literal["traffic"] = "traffic"
    nodes: tuple[str, ...] = Field(min_length=1)
    source_addresses: tuple[str, ...]
    to: str
    to_address: str
    port: int = Field(gt=0, lt=65_536)
    source_port: int = Field(gt=0, lt=65_536)
    flows: int = Field(gt=0)
    on_ns: int = Field(ge=0)
    off_ns: int = Field(ge=0)
    seed: int


PlannedFault = Annotated[
    LinkFault | NodeFault | AgentFault | ResetFault | TrafficFault, Field(discriminator="target")
]
