"""``faults:``: what is done to links and nodes while a run is on, as an author writes it.

::

    faults:
      - {kind: down, link: wan1, at: 12 s, duration: 4 s}
      - {kind: delay, link: wan, direction: forward, add: 30 ms, at: 2 s, duration: 1 s,
         every: 5 s, times: 3}
      - {kind: kill, node: p1, at: 3 s, probability: 50 %}

Times count from the barrier. A link is named as the plan names it, or by its class: then it is
every link of that class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from testbed.contract.fault import (
    AddedDelay,
    AddedJitter,
    AddedLoss,
    Corruption,
    Down,
    Duplication,
    Effect,
    SlowRate,
)
from testbed.scenario.ailments import AGENT_KINDS, AgentChoice, OnAgents, OnPairs
from testbed.scenario.flowfault import ResetFault, TrafficFault
from testbed.scenario.impairment import PlainJitter, PlainLoss
from testbed.scenario.linkspec import plain_jitter, plain_loss
from testbed.scenario.packetfault import (
    BlackholeFault,
    HoldFault,
    MarkFault,
    MtuFault,
    ReorderFault,
    SynLossFault,
)
from testbed.scenario.timed import OnLinks, OnNodes, Timed, key
from testbed.units import Duration, Rate, Share


class DownFault(OnLinks):
    """Nothing passes. In one direction only, this is a one-way partition."""

    EXAMPLE = "{kind: down, link: wan1, at: 12 s, duration: 4 s}"

    kind: Literal["down"]

    def effect(self) -> Effect:
        return Down()


class RateFault(OnLinks):
    """The rate collapses; the buffer keeps its bytes."""

    EXAMPLE = "{kind: rate, link: wan1, to: 1 Gbit/s, at: 2 s, duration: 3 s}"

    kind: Literal["rate"]
    to: Rate = key("what is left, where the link has more")

    def effect(self) -> Effect:
        return SlowRate(rate_bps=self.to.bps)

    @model_validator(mode="after")
    def _whole_bytes(self) -> Self:
        if self.to.bps == 0 or self.to.bps % 8:
            raise ValueError("to must be a whole number of bytes per second (8 bit/s), above 0")
        return self


class DelayFault(OnLinks):
    """Every frame arrives so much later, in each direction that is named."""

    EXAMPLE = "{kind: delay, link: wan, direction: forward, add: 30 ms, at: 2 s}"

    kind: Literal["delay"]
    add: Duration = key("how much later, one way")

    def effect(self) -> Effect:
        return AddedDelay(delay_ns=self.add.ns)

    @model_validator(mode="after")
    def _above_zero(self) -> Self:
        if self.add.ns == 0:
            raise ValueError("add must be longer than 0 ns")
        return self


class JitterFault(OnLinks):
    """A jitter storm."""

    EXAMPLE = (
        "{kind: jitter, link: wan, at: 2 s, duration: 1 s,\n"
        "     jitter: {spread: 1 ms, distribution: normal, reorder: false}}"
    )

    kind: Literal["jitter"]
    jitter: PlainJitter = key("spread, distribution and reorder, as for a link")

    def effect(self) -> Effect:
        return AddedJitter(jitter=plain_jitter(self.jitter))


class LossFault(OnLinks):
    """Frames are lost, each on its own or in bursts."""

    EXAMPLE = "{kind: loss, link: wan, loss: {kind: random, share: 0.1 %}, at: 2 s, duration: 1 s}"

    kind: Literal["loss"]
    loss: PlainLoss = key("kind and shares, as for a link")

    def effect(self) -> Effect:
        return AddedLoss(loss=plain_loss(self.loss))


class DuplicateFault(OnLinks):
    """Frames arrive twice."""

    EXAMPLE = "{kind: duplicate, link: wan1, share: 1 %, at: 2 s, duration: 1 s}"

    kind: Literal["duplicate"]
    share: Share = key("share of the frames")

    def effect(self) -> Effect:
        return Duplication(share=self.share.fraction)


class CorruptFault(OnLinks):
    """Frames arrive with one bit flipped."""

    EXAMPLE = "{kind: corrupt, link: wan1, share: 100 ppm, at: 2 s, duration: 1 s}"

    kind: Literal["corrupt"]
    share: Share = key("share of the frames")

    def effect(self) -> Effect:
        return Corruption(share=self.share.fraction)


class PauseFault(OnNodes):
    """The programs of a node stand still, then go on."""

    EXAMPLE = "{kind: pause, node: md1, at: 3 s, duration: 500 ms}"

    kind: Literal["pause"]


class KillFault(OnNodes):
    """The programs of a node end at once; an agent stays away."""

    EXAMPLE = "{kind: kill, node: p1, at: 3 s}"

    kind: Literal["kill"]


class RestartFault(OnNodes):
    """The programs of a node end at once and start anew."""

    EXAMPLE = "{kind: restart, node: wan1, at: 3 s}"

    kind: Literal["restart"]


class DisconnectFault(OnNodes):
    """A node loses its links, then has them again."""

    EXAMPLE = "{kind: disconnect, node: md1, at: 3 s, duration: 200 ms}"

    kind: Literal["disconnect"]


FaultChoice: TypeAlias = Annotated[
    DownFault | RateFault | DelayFault | JitterFault | LossFault | DuplicateFault | CorruptFault
    | ReorderFault | SynLossFault | BlackholeFault | MtuFault | MarkFault | HoldFault
    | PauseFault | KillFault | RestartFault | DisconnectFault
    | AgentChoice | ResetFault | TrafficFault,
    Field(discriminator="kind"),
]  # fmt: skip
KINDS: tuple[type[OnLinks | OnNodes | OnAgents | OnPairs | ResetFault | TrafficFault], ...] = (
    DownFault, RateFault, DelayFault, JitterFault, LossFault, DuplicateFault, CorruptFault,
    ReorderFault, SynLossFault, BlackholeFault, MtuFault, MarkFault, HoldFault,
    PauseFault, KillFault, RestartFault, DisconnectFault, *AGENT_KINDS,
    ResetFault, TrafficFault,
)  # fmt: skip
"""In the order in which lists show them."""
MOST_FAULTS = 1_000


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a fault: whether it must be given, and what it means."""

    name: str
    required: bool
    meaning: str


def keys_of(fault: type[Timed]) -> tuple[Key, ...]:
    """All keys but ``kind``; first those that must be given."""
    keys = [
        Key(name, field.is_required(), field.description or "")
        for name, field in fault.model_fields.items()
        if name != "kind" and not (fault.INSTANT and name == "duration")
    ]
    return tuple(sorted(keys, key=lambda key: not key.required))


def kind_of(fault: type[Timed]) -> str:
    """The word by which files name a kind."""
    return str(fault.model_fields["kind"].annotation.__args__[0])  # type: ignore[union-attr]
