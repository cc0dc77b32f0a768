"""The network of a plan: nodes, interfaces, wires, routes. Names and addresses are final here.

::

    p1 ─eth0──a0[wire fab-p1]b0──r0─ tor-a ─…─ [wire wan1] ─…─ tor-b ─…─ md1

Every link runs through a *wire*: a namespace without addresses that patches its
two outer devices together (tc mirred) and owns all shaping of both directions.
Several access links of one site may share one wire namespace.
"""

from __future__ import annotations

from pydantic import Field

from testbed.contract.link import LinkSpec
from testbed.contract.record import Record
from testbed.contract.role import NodeKind, Role

INTERFACE_NAME_MAX = 15


class Interface(Record):
    """One device of a node. ``address`` is ``a.b.c.d/len``; wires have none."""

    name: str = Field(max_length=INTERFACE_NAME_MAX, min_length=1)
    mac: str
    address: str | None = None


class Node(Record):
    """One namespace."""

    name: str = Field(max_length=10, min_length=1)
    kind: NodeKind
    site: str
    role: Role | None = None
    interfaces: tuple[Interface, ...] = ()
    sysctls: tuple[tuple[str, str], ...] = ()


class End(Record):
    """One end of a link: a node's interface and the wire's device that faces it."""

    node: str
    interface: str
    wire_device: str = Field(max_length=INTERFACE_NAME_MAX)


class Link(Record):
    """A link a—b through ``wire``. ``forward`` shapes a→b, ``backward`` shapes b→a.

    ``inner`` names the two devices of the veth pair inside the wire that separates
    the rate stage from the delay stage; forward traffic enters at ``a.wire_device``,
    is queued on ``inner[0]`` (rate), leaves ``inner[1]`` and is delayed on
    ``b.wire_device``. Backward traffic mirrors this: rate on ``inner[1]``, delay on
    ``a.wire_device``.
    """

    name: str = Field(max_length=20)
    kind: str
    """Class of the link in its topology: ``fabric``, ``wan``, ``client``."""
    wire: str
    a: End
    b: End
    inner: tuple[str, str]
    forward: LinkSpec
    backward: LinkSpec


class NextHop(Record):
    """One leg of a (multipath) route."""

    via: str
    interface: str
    weight: int = Field(default=1, ge=1, le=256)


class Route(Record):
    """A route of one node; several hops make it multipath."""

    node: str
    destination: str
    """``default`` or ``a.b.c.d/len``."""
    hops: tuple[NextHop, ...]


class Neighbour(Record):
    """A static ARP entry: no resolution traffic ever shifts a seeded draw."""

    node: str
    interface: str
    address: str
    mac: str


class Network(Record):
    """Everything the lab has to build, in build order."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    routes: tuple[Route, ...]
    neighbours: tuple[Neighbour, ...]
