"""The two Docker networks of every link, one on each side of its wire (decision 7).

::

    p1 .2 ──[p1-a  10.1.3.0/29, gateway .1]── .3 fab-a .3 ──[p1-b  placeholder]── .2 tor-a
                                                                    (tor-a then takes 10.1.3.1)

An agent keeps the address that Docker gives it. Wires and routers only find their devices by
these addresses, and then set up what the plan says.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from testbed.contract.network import End, Link, Network, Node
from testbed.contract.role import NodeKind
from testbed.errors import PlanError

PREFIX = 29
"""Room for the gateway, the node and the wire; /30 has none for the wire."""
PLACEHOLDERS = ipaddress.ip_network("10.192.0.0/16")
"""Addresses between wires and routers, which nobody keeps. Their first number is that of all
addresses of the plan."""


@dataclass(frozen=True, slots=True)
class Seat:
    """One end of a segment.

    Attributes:
        node: who sits there.
        device: the plan's name of its device.
        address: what Docker gives it, without a prefix length.
        mac: the plan's hardware address.
        keeps: whether ``address`` is the plan's, and stays.
    """

    node: str
    device: str
    address: str
    mac: str
    keeps: bool


@dataclass(frozen=True, slots=True)
class Segment:
    """One Docker network: a bridge between a node and the wire of one of its links.

    Attributes:
        subnet: ``a.b.c.d/29``.
        gateway: its first address; the router's on a segment with an agent, else nobody's.
        mtu: bytes.
    """

    name: str
    subnet: str
    gateway: str
    mtu: int
    seats: tuple[Seat, Seat]


def segments(network: Network) -> tuple[Segment, ...]:
    """Two a link, in build order.

    Raises:
        PlanError: an agent has several links, or its address does not fit its segment.
    """
    nodes = {node.name: node for node in network.nodes}
    found: list[Segment] = []
    for link in network.links:
        for side, (end, other) in (("a", (link.a, link.b)), ("b", (link.b, link.a))):
            found.append(_segment(f"{link.name}-{side}", link, end, other, nodes, len(found)))
    agents = [s.seats[0].node for s in found if s.seats[0].keeps]
    if twice := sorted({name for name in agents if agents.count(name) > 1}):
        raise PlanError(
            "lay out the containers' networks", ", ".join(twice),
            "an agent with several links would need routes that only NET_ADMIN may set",
            "give each agent one link",
        )  # fmt: skip
    return tuple(found)


def first_of(address: str) -> int:
    """First number of an address: all addresses of a plan have the same."""
    return int(address.partition(".")[0])


def with_first(address: str, first: int) -> str:
    """The address with another first number."""
    return f"{first}.{address.partition('.')[2]}"


def seats_of(network: Network, node: str) -> tuple[Seat, ...]:
    """All seats of one node."""
    return tuple(s for segment in segments(network) for s in segment.seats if s.node == node)


def _segment(
    name: str, link: Link, end: End, other: End, nodes: dict[str, Node], index: int
) -> Segment:
    keeps = nodes[end.node].kind is NodeKind.AGENT
    own = _address(nodes[end.node], end.interface)
    placeholder = with_first(str(PLACEHOLDERS.network_address + index * 8), first_of(own))
    subnet = ipaddress.ip_network(f"{own if keeps else placeholder}/{PREFIX}", strict=False)
    gateway, second, third = (str(subnet.network_address + n) for n in (1, 2, 3))
    if keeps and (own != second or _address(nodes[other.node], other.interface) != gateway):
        raise PlanError(
            "lay out the containers' networks", f"link {link.name}",
            f"its subnet {subnet} needs the router at {gateway} and the agent at {second}",
            "plan it for the compose lab",
        )  # fmt: skip
    seats = (
        Seat(end.node, end.interface, second, _mac(nodes[end.node], end.interface), keeps),
        Seat(link.wire, end.wire_device, third, _mac(nodes[link.wire], end.wire_device), False),
    )
    return Segment(name, str(subnet), gateway, min(link.forward.mtu, link.backward.mtu), seats)


def _address(node: Node, device: str) -> str:
    for interface in node.interfaces:
        if interface.name == device and interface.address is not None:
            return interface.address.partition("/")[0]
    raise PlanError("lay out the containers' networks", f"{node.name}:{device}", "no address")


def _mac(node: Node, device: str) -> str:
    for interface in node.interfaces:
        if interface.name == device:
            return interface.mac
    raise PlanError("lay out the containers' networks", f"{node.name}:{device}", "no such device")
