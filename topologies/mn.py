"""The testbed's topologies for Mininet's own command line.

``mn --custom topologies/mn.py --topo two-dc,prefill=2,decode=3 --test pingall``
builds the same nodes, wires, addresses, routes and shaping as ``testbed run``.
Parameters are those of the topology file, and so are the profiles of its links.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import count

from testbed.contract.network import Network, Node
from testbed.contract.role import NodeKind
from testbed.lab.configure import add_neighbours, add_routes, configure_node, set_frame_sizes
from testbed.lab.namespace import Namespaces
from testbed.lab.tc import Wire
from testbed.plan import roster
from testbed.plan.network import build_network
from testbed.scenario.alone import topology_alone
from testbed.scenario.data import DataKind, names

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from mininet.node import Node as MininetNode
    from mininet.node import Switch
    from mininet.topo import Topo


class _Planned:
    """A node of a plan that configures itself in its own namespace."""

    name: str
    pid: int
    params: dict[str, object]

    def configure_planned(self) -> None:
        """Devices, addresses, routes and, in a wire, the shaping of its links."""
        network, node = self.params["plan_network"], self.params["plan_node"]
        if not isinstance(network, Network) or not isinstance(node, Node):
            raise TypeError("a planned node needs its network and its node")
        path = f"/proc/{self.pid}/ns/net"
        namespaces = Namespaces({self.name: path})
        try:
            for link in network.links:
                if self.name in (link.a.node, link.b.node, link.wire):
                    set_frame_sizes(namespaces, link, only=self.name)
            configure_node(namespaces, node)
            add_routes(namespaces, network, self.name)
            add_neighbours(namespaces, network, self.name)
        finally:
            namespaces.close()
        mine = [link for link in network.links if link.wire == self.name]
        if mine:
            with Wire(path) as wire:
                for link in mine:
                    wire.apply(link)
                    wire.verify(link)


class PlannedHost(_Planned, MininetNode):  # type: ignore[misc]  # Mininet has no types
    """An agent's node; Mininet's tests ping between these."""

    def config(self, **params: object) -> object:
        """Called by Mininet when all links exist."""
        done = super().config(**params)
        self.configure_planned()
        return done


class PlannedRelay(_Planned, Switch):  # type: ignore[misc]
    """A router or a wire: a switch to Mininet, so that its tests leave it out."""

    def start(self, controllers: object) -> None:
        """Called by Mininet when the network starts."""
        self.configure_planned()

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803  # Mininet's name
        """Nothing runs here; interfaces go with the namespace."""
        super().stop(deleteIntfs)


class PlannedTopo(Topo):  # type: ignore[misc]
    """A topology file as Mininet sees it."""

    def build(self, topology: str = "two-dc", seed: int = 1, **parameters: int) -> None:
        """``parameters`` are those of the topology file, for example ``prefill=2``."""
        scenario = topology_alone(topology, parameters)
        network = build_network(scenario, roster(scenario), int(seed))
        for number, node in enumerate(network.nodes):
            if node.kind is NodeKind.AGENT:
                address = next(i.address for i in node.interfaces if i.address is not None)
                self.addHost(
                    node.name, cls=PlannedHost, ip=address, plan_network=network, plan_node=node
                )
            else:
                self.addSwitch(
                    node.name, cls=PlannedRelay, dpid=f"{number + 1:x}", inNamespace=True,
                    plan_network=network, plan_node=node,
                )  # fmt: skip
        macs = {(n.name, i.name): i.mac for n in network.nodes for i in n.interfaces}

        ports: dict[str, Iterator[int]] = {node.name: count() for node in network.nodes}

        def veth(one: tuple[str, str], other: tuple[str, str]) -> None:
            self.addLink(  # explicit ports: Mininet gives both ends of an inner link the same
                one[0], other[0], port1=next(ports[one[0]]), port2=next(ports[other[0]]),
                intfName1=one[1], intfName2=other[1], addr1=macs[one], addr2=macs[other],
            )  # fmt: skip

        for link in network.links:
            veth((link.a.node, link.a.interface), (link.wire, link.a.wire_device))
            veth((link.wire, link.inner[0]), (link.wire, link.inner[1]))
            veth((link.wire, link.b.wire_device), (link.b.node, link.b.interface))


def named(name: str) -> type[PlannedTopo]:
    """The topology file ``name`` as a class that Mininet can build."""

    class Named(PlannedTopo):
        def build(self, **parameters: int) -> None:
            """See ``PlannedTopo.build``."""
            super().build(name, **parameters)

    return Named


topos = {name: named(name) for name in names(DataKind.TOPOLOGIES)}
