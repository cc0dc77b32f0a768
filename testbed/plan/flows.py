"""Faults of connections, against the network as it is built: addresses, ports, instants."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.contract.fault import ResetFault, Span, TrafficFault
from testbed.contract.network import Network
from testbed.contract.scale import Scale
from testbed.errors import PlanError
from testbed.plan.packets import agent_address
from testbed.plan.sysctl import LAST_LOCAL_PORT
from testbed.scenario import flowfault
from testbed.scenario.packetfault import port_number

_ATTEMPT = "plan a fault"
FIRST_PORT, PORTS = 7_100, 1_000
"""On which receivers of background traffic listen: one a sender."""
SOURCE_PORTS = range(LAST_LOCAL_PORT + 1, 65_536)


def plan_reset(
    choice: flowfault.ResetFault, name: str, place: str, spans: tuple[Span, ...],
    nodes: tuple[str, ...], network: Network,
) -> ResetFault:  # fmt: skip
    """Instants are a nanosecond long.

    Raises:
        PlanError: somebody is no agent; the subject is ``place``.
    """
    for node in nodes:
        agent_address(network, node, place)
    return ResetFault(
        name=name, place=place, nodes=nodes,
        spans=tuple(span.model_copy(update={"end_ns": span.begin_ns + 1}) for span in spans),
        peer=None if choice.peer is None else agent_address(network, choice.peer, place),
        port=port_number(choice.port),
    )  # fmt: skip


def plan_traffic(
    choice: flowfault.TrafficFault, name: str, place: str, spans: tuple[Span, ...],
    nodes: tuple[str, ...], network: Network, seed: int, scale: Scale,
    others: Sequence[TrafficFault],
) -> TrafficFault:  # fmt: skip
    """Ports lie where neither agents nor the kernel's own choice are, and all differ.

    Args:
        others: those that are planned already.

    Raises:
        PlanError: a sender is the receiver, a node has no address there, or ports run out.
    """
    if choice.to in nodes:
        raise PlanError(_ATTEMPT, place, f"{choice.to} cannot send to itself", "name two nodes")
    senders = sum(len(other.nodes) for other in others)
    taken = sum(len(other.nodes) * other.flows for other in others)
    if senders + len(nodes) > PORTS or taken + len(nodes) * choice.flows > len(SOURCE_PORTS):
        raise PlanError(
            _ATTEMPT, place, f"{taken + len(nodes) * choice.flows} connections of background "
            f"traffic; there are {len(SOURCE_PORTS)} source ports for them",
            "use fewer senders or flows",
        )  # fmt: skip
    burst = choice.burst
    return TrafficFault(
        name=name, place=place, spans=spans, nodes=nodes,
        source_addresses=tuple(_address(network, node, None, place) for node in nodes),
        to=choice.to, to_address=_address(network, choice.to, choice.link, place),
        port=FIRST_PORT + senders, source_port=SOURCE_PORTS[taken],
        flows=choice.flows, seed=seed,
        on_ns=scale.lab_ns(burst.on.ns) if burst else 0,
        off_ns=scale.lab_ns(burst.off.ns) if burst else 0,
    )  # fmt: skip


def _address(network: Network, name: str, link: str | None, place: str) -> str:
    """Of a node: on that link, or its first one."""
    faces = [
        (one.name, end.interface)
        for one in network.links
        for end in (one.a, one.b)
        if end.node == name and link in (None, one.name)
    ]
    wanted = {interface for _, interface in faces}
    for node in network.nodes:
        for interface in node.interfaces:
            if node.name == name and interface.name in wanted and interface.address:
                return interface.address.partition("/")[0]
    where = "" if link is None else f" on link {link!r}"
    raise PlanError(
        _ATTEMPT, place, f"the network has no node {name!r} with an address{where}",
        f"nodes: {', '.join(node.name for node in network.nodes)}",
    )  # fmt: skip
