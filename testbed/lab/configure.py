"""Configures one node at a time inside its namespace: devices, addresses, routes, neighbours."""

from __future__ import annotations

import time

from testbed.contract.network import Link, Network, Node
from testbed.errors import LabError
from testbed.lab.namespace import Namespaces

_PERMANENT = 0x80
"""NUD_PERMANENT: an entry that never expires and is never asked for."""

_CARRIER_STEP_S = 0.1
_CARRIER_MOST_S = 10.0


def wait_for_carriers(namespaces: Namespaces, network: Network) -> None:
    """Returns when every device of the network transmits.

    The kernel handles news about carriers at most once a second (net/core/link_watch.c,
    linkwatch_nextevent), and until then a device that is up drops what it is given. In a large
    lab the last devices start to work a second after they were made.

    Raises:
        LabError: a device has no carrier although both of its ends are up.
    """
    waiting = {
        node.name: {interface.name for interface in node.interfaces} for node in network.nodes
    }
    deadline = time.monotonic() + _CARRIER_MOST_S
    while True:
        for node, devices in tuple(waiting.items()):
            for link in namespaces[node].get_links():
                if link.get("operstate") == "UP":
                    devices.discard(str(link.get("ifname")))
            if not devices:
                del waiting[node]
        if not waiting:
            return
        if time.monotonic() >= deadline:
            node, devices = next(iter(waiting.items()))
            raise LabError("wait for carriers", f"{node}: {', '.join(sorted(devices))}", "none yet")
        time.sleep(_CARRIER_STEP_S)


def set_frame_sizes(namespaces: Namespaces, link: Link, only: str | None = None) -> None:
    """MTU and largest superframe on every device that a link passes (of one node, if named).

    A superframe no larger than the MTU means one frame a packet: segmentation is then
    limited to one segment on every device.
    """
    mtu = min(link.forward.mtu, link.backward.mtu)
    superframe = min(link.forward.superframe_bytes, link.backward.superframe_bytes)
    for node, device in (
        (link.a.node, link.a.interface),
        (link.wire, link.a.wire_device),
        (link.wire, link.inner[0]),
        (link.wire, link.inner[1]),
        (link.wire, link.b.wire_device),
        (link.b.node, link.b.interface),
    ):
        if only not in (None, node):
            continue
        socket = namespaces[node]
        index = namespaces.index(node, device)
        if superframe <= mtu:
            socket.link("set", index=index, mtu=mtu, gso_max_segs=1)
        else:
            socket.link("set", index=index, mtu=mtu)


def configure_node(namespaces: Namespaces, node: Node) -> None:
    """Sysctls, devices up, addresses."""
    namespaces.write_sysctls(node.name, node.sysctls)
    raise_devices(namespaces, node)


def raise_devices(namespaces: Namespaces, node: Node) -> None:
    """Devices up, addresses."""
    socket = namespaces[node.name]
    for name in ("lo", *(interface.name for interface in node.interfaces)):
        socket.link("set", index=namespaces.index(node.name, name), state="up")
    for interface in node.interfaces:
        if interface.address is not None:
            address, _, length = interface.address.partition("/")
            index = namespaces.index(node.name, interface.name)
            socket.addr("replace", index=index, address=address, prefixlen=int(length))


def add_routes(namespaces: Namespaces, network: Network, node: str) -> None:
    """The node's routes; several hops make one multipath route."""
    socket = namespaces[node]
    for route in network.routes:
        if route.node != node:
            continue
        hops = [
            {
                "gateway": hop.via,
                "oif": namespaces.index(node, hop.interface),
                "hops": hop.weight - 1,
            }
            for hop in route.hops
        ]
        target = "0.0.0.0/0" if route.destination == "default" else route.destination
        if len(hops) == 1:
            socket.route("replace", dst=target, gateway=hops[0]["gateway"], oif=hops[0]["oif"])
        else:
            socket.route("replace", dst=target, multipath=hops)


def add_neighbours(namespaces: Namespaces, network: Network, node: str) -> None:
    """Static ARP entries, so that no resolution traffic shifts a seeded draw."""
    socket = namespaces[node]
    for entry in network.neighbours:
        if entry.node == node:
            index = namespaces.index(node, entry.interface)
            socket.neigh(
                "replace", ifindex=index, dst=entry.address, lladdr=entry.mac, state=_PERMANENT
            )
