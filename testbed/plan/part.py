"""The part of a network that the links of one class need: both ends and the wires."""

from __future__ import annotations

from testbed.contract.network import Link, Network


def part_of(network: Network, kind: str) -> Network:
    """Nodes and devices of the links of class ``kind``; nothing is routed."""
    links = tuple(link for link in network.links if link.kind == kind)
    homes = {name for link in links for name in (link.a.node, link.wire, link.b.node)}
    devices = {name for link in links for name in _devices(link)}
    nodes = tuple(
        node.model_copy(
            update={"interfaces": tuple(i for i in node.interfaces if i.name in devices)}
        )
        for node in network.nodes
        if node.name in homes
    )
    neighbours = tuple(one for one in network.neighbours if one.interface in devices)
    return Network(nodes=nodes, links=links, routes=(), neighbours=neighbours)


def _devices(link: Link) -> tuple[str, ...]:
    a, b = link.a, link.b
    return (a.interface, a.wire_device, *link.inner, b.wire_device, b.interface)
