"""Faults of connections: those that end at once, and those that come on top of the run's own.

::

    faults:
      - {kind: reset, node: p1, peer: md1, port: data, at: 2 s}
      - {kind: traffic, node: [p1, p2], to: md1, flows: 4, at: 1 s, duration: 2 s}
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from testbed.contract.record import Record
from testbed.contract.sieve import Port
from testbed.scenario.entry import Name
from testbed.scenario.packetfault import PortNumber
from testbed.scenario.timed import Names, Timed, key
from testbed.units import Duration


class ResetFault(Timed):
    """Established TCP connections of a node are destroyed: it aborts them, its peers hear RST."""

    EXAMPLE = "{kind: reset, node: p1, peer: md1, port: data, at: 2 s}"
    INSTANT: ClassVar[bool] = True

    kind: Literal["reset"]
    node: Names = key("an agent of the plan, or a list of agents")
    peer: Name | None = key("only connections with this agent", None)
    port: Port | PortNumber | None = key("only TCP with this port: data, control or a number", None)


class Burst(Record):
    """Traffic that comes and goes."""

    on: Duration
    off: Duration

    @model_validator(mode="after")
    def _both(self) -> Self:
        if not self.on.ns or not self.off.ns:
            raise ValueError("on and off must be longer than 0 ns; without burst it is steady")
        return self


class TrafficFault(Timed):
    """Others use the network as well: TCP from some nodes to one, as fast as it goes."""

    EXAMPLE = (
        "{kind: traffic, node: [p1, tor-a], to: md1, flows: 2, at: 2 s, duration: 1 s,\n"
        "     burst: {on: 20 ms, off: 80 ms}}"
    )

    kind: Literal["traffic"]
    node: Names = key("who sends: an agent or router of the plan, or a list; many are an incast")
    to: Name = key("who receives")
    link: Name | None = key("a link of the receiver, whose address there is then used", None)
    flows: Annotated[int, Field(strict=True, ge=1, le=64)] = key("connections of each sender", 1)
    burst: Burst | None = key("means of on and off, drawn from the seed; left out, steady", None)
