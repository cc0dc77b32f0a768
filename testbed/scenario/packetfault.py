"""Faults of single packets of a link: which ones are picked out, and what becomes of them.

::

    faults:
      - {kind: syn-loss, link: wan, share: 30 %, at: 1 s, duration: 2 s}
      - {kind: blackhole, link: wan, between: [p1, md1], port: data, direction: forward, at: 2 s}
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from testbed.contract.agent import CONTROL_PORT, DATA_PORT
from testbed.contract.fault import Effect, Reordering
from testbed.contract.sieve import Flows, Hold, Port, Sieve
from testbed.scenario.entry import Name
from testbed.scenario.timed import OnLinks, key
from testbed.units import Duration, Share, Size

PORTS: dict[str, int] = {"data": DATA_PORT, "control": CONTROL_PORT}
PortNumber = Annotated[int, Field(strict=True, gt=0, lt=65_536)]


def _above_zero(share: Share) -> Share:
    if share.steps == 0:
        raise ValueError("share must be above 0 %, or nothing is hit")
    return share


SomeShare = Annotated[Share, AfterValidator(_above_zero)]


def port_number(port: Port | int | None) -> int | None:
    """The TCP port that a word of ours stands for."""
    return PORTS[port] if isinstance(port, str) else port


class OnFlows(OnLinks):
    """A fault of some packets of links; without ``between`` and ``port`` of all IPv4 packets."""

    between: tuple[Name, Name] | None = key(
        "only packets from one of two agents to the other", None
    )
    port: Port | PortNumber | None = key("only TCP with this port: data, control or a number", None)

    @abstractmethod
    def sieve(self, flows: Flows, number: int, seed: int) -> Sieve:
        """What it does; addresses, number and seed are the plan's."""

    def effect(self) -> Effect:
        """The same before it is planned: of all addresses."""
        return self.sieve(Flows(port=port_number(self.port)), 0, 0)

    @model_validator(mode="after")
    def _two_ends(self) -> Self:
        if self.between is not None and self.between[0] == self.between[1]:
            raise ValueError("between must name two agents")
        return self


class SynLossFault(OnFlows):
    """TCP connections are not opened: segments with SYN are lost, those of both ends."""

    EXAMPLE = "{kind: syn-loss, link: wan, share: 30 %, at: 2 s, duration: 3 s}"

    kind: Literal["syn-loss"]
    share: SomeShare = key("share of these segments, drawn from the run's seed")

    def sieve(self, flows: Flows, number: int, seed: int) -> Sieve:
        share = self.share.fraction
        return Sieve(kind=self.kind, number=number, flows=flows, share=share, seed=seed)


class BlackholeFault(OnFlows):
    """All packets of some flows vanish, others pass."""

    EXAMPLE = "{kind: blackhole, link: wan, between: [p1, md1], port: data, at: 2 s, duration: 2 s}"

    kind: Literal["blackhole"]

    def sieve(self, flows: Flows, number: int, seed: int) -> Sieve:
        return Sieve(kind=self.kind, number=number, flows=flows)


class MtuFault(OnFlows):
    """A path whose MTU shrank and that says nothing: larger IP packets vanish without ICMP."""

    EXAMPLE = "{kind: mtu, link: wan, above: 1400 B, at: 2 s, duration: 3 s}"

    kind: Literal["mtu"]
    above: Size = key("IP packets of more than this vanish")

    def sieve(self, flows: Flows, number: int, seed: int) -> Sieve:
        return Sieve(kind=self.kind, number=number, flows=flows, above=self.above.bytes)

    @model_validator(mode="after")
    def _a_size_of_packets(self) -> Self:
        if not 68 <= self.above.bytes < 65_536:
            raise ValueError("above must be at least 68 B, the least MTU of IPv4, and below 64 KiB")
        return self


class MarkFault(OnFlows):
    """Packets of senders that can ECN are marked as if a queue were congested."""

    EXAMPLE = "{kind: mark, link: wan, share: 10 %, at: 2 s, duration: 3 s}"

    kind: Literal["mark"]
    share: SomeShare = key("share of the ECN-capable packets, drawn from the run's seed")

    def sieve(self, flows: Flows, number: int, seed: int) -> Sieve:
        share = self.share.fraction
        return Sieve(kind=self.kind, number=number, flows=flows, share=share, seed=seed)


class ReorderFault(OnLinks):
    """Frames overtake all others that are under way: they arrive without the link's delay."""

    EXAMPLE = "{kind: reorder, link: wan1, share: 1 %, at: 2 s, duration: 1 s}"

    kind: Literal["reorder"]
    share: SomeShare = key("share of the frames")

    def effect(self) -> Effect:
        return Reordering(share=self.share.fraction)


class HoldFault(OnLinks):
    """A pause storm: a link sends nothing for a moment, again and again, and loses nothing."""

    EXAMPLE = "{kind: hold, link: p1, stop: 200 us, each: 5 ms, at: 2 s, duration: 1 s}"

    kind: Literal["hold"]
    stop: Duration = key("how long nothing is sent, 10 us to 10 ms")
    each: Duration = key("how often, from one stop to the next; longer than it")

    def effect(self) -> Effect:
        return Hold(stop_ns=self.stop.ns, each_ns=self.each.ns)

    @model_validator(mode="after")
    def _a_moment(self) -> Self:
        if not 10_000 <= self.stop.ns <= 10_000_000:
            raise ValueError("stop must be 10 us to 10 ms; a longer one is a link that is down")
        if self.each.ns <= self.stop.ns:
            raise ValueError("each must be longer than stop, or nothing passes at all")
        return self
