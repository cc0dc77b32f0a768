"""The program of a wire's or router's container: sets up its own namespace and stays.

Started anew, it does all of it anew: after a restart Docker has made new devices, which are
not shaped until then.
"""

from __future__ import annotations

import json
import signal
import sys
import time
import traceback
from pathlib import Path

from testbed.contract.meeting import Meeting, Said
from testbed.contract.network import Link, Network, Node
from testbed.contract.plan import Plan
from testbed.contract.role import NodeKind
from testbed.contract.segment import seats_of
from testbed.errors import LabError, TestbedError
from testbed.lab.configure import add_neighbours, add_routes, raise_devices, set_frame_sizes
from testbed.lab.container.devices import find_devices, take_over
from testbed.lab.namespace import HERE, Namespaces
from testbed.lab.tc import Wire

_DEVICES_WAIT_S = 60


def set_up(network: Network, node: Node, namespaces: Namespaces) -> None:
    """Devices, sysctls, addresses, routes, neighbours and, in a wire, all shaping.

    Raises:
        LabError: a device or sysctl is not as it has to be, or the kernel refuses.
    """
    socket = namespaces[node.name]
    seats = seats_of(network, node.name)
    until = time.time_ns() + _DEVICES_WAIT_S * 10**9
    indexes = find_devices(socket, seats, until)
    for seat in seats:
        take_over(socket, seat, indexes[seat.device])
    links = [link for link in network.links if link.wire == node.name]
    macs = {interface.name: interface.mac for interface in node.interfaces}
    for link in links:
        one, other = link.inner
        peer = {"ifname": other, "address": macs[other]}
        socket.link("add", ifname=one, kind="veth", address=macs[one], peer=peer)
    namespaces.forget(node.name)
    require_sysctls(node)
    for link in network.links:
        set_frame_sizes(namespaces, link, only=node.name)
    raise_devices(namespaces, node)
    add_routes(namespaces, network, node.name)
    add_neighbours(namespaces, network, node.name)
    if links:
        with Wire(HERE) as wire:
            for link in map(without_gates, links):
                wire.apply(link)
                wire.verify(link)


def without_gates(link: Link) -> Link:
    """As a wire can build it: it may not load programs (CAP_BPF). The lab, which may, adds gates
    at the start and where it takes up a wire that is back."""
    ways = {
        way: spec.model_copy(update={"gate_ns": 0, "hold": None})
        for way, spec in (("forward", link.forward), ("backward", link.backward))
    }
    return link.model_copy(update=ways)


def require_sysctls(node: Node) -> None:
    """Reads back what the container was started with: its /proc/sys cannot be written to.

    Raises:
        LabError: one differs.
    """
    for name, value in node.sysctls:
        path = Path("/proc/sys") / name.replace(".", "/")
        try:
            seen = path.read_text(encoding="ascii")
        except OSError as error:
            raise LabError("read a sysctl", f"{node.name}: {name}", str(error)) from error
        if seen.split() != value.split():
            raise LabError(
                "set up a container", f"{node.name}: {name}", f"is {seen.strip()}, not {value}",
                "start it with the sysctls of the compose file",
            )  # fmt: skip


def main(folder: str, name: str) -> int:
    """Sets up, says so, and waits to be stopped."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    run = Path(folder)
    meeting = Meeting(run)
    try:
        plan = Plan.model_validate(json.loads((run / "plan.json").read_text(encoding="utf-8")))
        node = next(node for node in plan.network.nodes if node.name == name)
        if node.kind is NodeKind.AGENT:
            raise LabError("set up a container", name, "it is an agent", "start it as one")
        namespaces = Namespaces({name: HERE})
        try:
            set_up(plan.network, node, namespaces)
        finally:
            namespaces.close()
    except (TestbedError, OSError, StopIteration) as error:
        traceback.print_exc()
        meeting.say(Said.ENDED, name, f"1 {error}")
        return 1
    meeting.say(Said.BUILT, name)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
