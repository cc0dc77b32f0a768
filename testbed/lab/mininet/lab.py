"""Builds a plan's network out of Mininet nodes and veth pairs; undoes it again.

Mininet makes and keeps the nodes (a shell in a namespace each). Links, addresses, routes
and shaping go through netlink directly: Mininet's own TCIntf leaves rates above 1 Gbit/s
unshaped, ignores some options and only logs tc's errors.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from testbed.contract.network import Interface, Link, Network, Node
from testbed.errors import LabError
from testbed.lab.built import Built
from testbed.lab.configure import (
    add_neighbours,
    add_routes,
    configure_node,
    set_frame_sizes,
    wait_for_carriers,
)
from testbed.lab.ledger import Ledger
from testbed.lab.mininet.faults import NamespaceFaults
from testbed.lab.mininet.node import LabInterface, LabNode
from testbed.lab.namespace import Namespaces

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # Mininet imports distutils
    from mininet.net import Mininet


class MininetLab(Built):
    """A built network. Use as a context manager: leaving it undoes everything made."""

    def __init__(self, network: Network, ledger: Ledger) -> None:
        super().__init__(ledger)
        self.network = network
        self.net = Mininet(topo=None, build=False, controller=None)
        self.namespaces = Namespaces({})

    def paths(self) -> Mapping[str, str]:
        """Network namespace of every node, as a path."""
        return self.namespaces.paths

    def fallen(self) -> Mapping[str, str]:
        """See ``Lab``: namespaces end with the lab, and the zygote reports agents that end."""
        return {}

    def risen(self, node: str) -> bool:
        """See ``Lab``."""
        return False

    def returning(self, node: str) -> bool:
        """See ``Lab``."""
        return False

    def node_faults(self) -> NamespaceFaults:
        """See ``Lab``."""
        return NamespaceFaults(self.network, self.namespaces)

    def node(self, name: str) -> LabNode:
        """The Mininet node of that name (``cmd`` runs a command in it)."""
        found: LabNode = self.net.get(name)
        return found

    def _build(self) -> None:
        self.ledger.acquire("namespaces", "sockets", self.namespaces.close)
        for node in self.network.nodes:
            self._add_node(node)
        for link in self.network.links:
            self._add_link(link)
        for link in self.network.links:
            set_frame_sizes(self.namespaces, link)
        for node in self.network.nodes:
            configure_node(self.namespaces, node)
        for node in self.network.nodes:
            add_routes(self.namespaces, self.network, node.name)
            add_neighbours(self.namespaces, self.network, node.name)
        wait_for_carriers(self.namespaces, self.network)

    def _add_node(self, node: Node) -> None:
        self.ledger.acquire("node", node.name)
        made = self.net.addHost(node.name, cls=LabNode, ip=None)
        self.ledger.acquire("shell", f"{node.name} pid {made.pid}", made.terminate)
        self.namespaces.paths[node.name] = f"/proc/{made.pid}/ns/net"

    def _pid(self, name: str) -> int:
        return int(self.net.get(name).pid)

    def _interface(self, node: str, name: str) -> Interface:
        for candidate in self._node(node).interfaces:
            if candidate.name == name:
                return candidate
        raise LabError("build a link", f"{node}:{name}", "the plan has no such interface")

    def _node(self, name: str) -> Node:
        for node in self.network.nodes:
            if node.name == name:
                return node
        raise LabError("build a link", name, "the plan has no such node")

    def _veth(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        """A veth pair between (node, device) and (node, device), made in place."""
        (node_a, dev_a), (node_b, dev_b) = one, other
        self.ledger.acquire("veth", f"{node_a}:{dev_a} - {node_b}:{dev_b}")
        self.namespaces[node_a].link(
            "add",
            ifname=dev_a,
            kind="veth",
            address=self._interface(node_a, dev_a).mac,
            peer={
                "ifname": dev_b,
                "net_ns_pid": self._pid(node_b),
                "address": self._interface(node_b, dev_b).mac,
            },
        )
        for node, device in (one, other):
            LabInterface(device, node=self.net.get(node), moveIntfFn=lambda *_, **__: None)

    def _add_link(self, link: Link) -> None:
        self._veth((link.a.node, link.a.interface), (link.wire, link.a.wire_device))
        self._veth((link.wire, link.inner[0]), (link.wire, link.inner[1]))
        self._veth((link.wire, link.b.wire_device), (link.b.node, link.b.interface))
