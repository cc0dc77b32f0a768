"""Faults of single packets, against the network as it is built: addresses, seeds, gates."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.contract.fault import Effect, LinkFault, PlannedFault
from testbed.contract.link import LinkSpec
from testbed.contract.network import Network
from testbed.contract.role import NodeKind
from testbed.contract.scale import Scale
from testbed.contract.sieve import Flows, Hold
from testbed.errors import PlanError
from testbed.scenario.packetfault import OnFlows, port_number
from testbed.scenario.timed import OnLinks


def effect_of(choice: OnLinks, network: Network, number: int, seed: int, place: str) -> Effect:
    """What a fault of links does, with the addresses of the agents that it names.

    Raises:
        PlanError: it names somebody who is no agent; the subject is ``place``.
    """
    if not isinstance(choice, OnFlows):
        return choice.effect()
    pair = choice.between
    between = None
    if pair is not None:
        between = agent_address(network, pair[0], place), agent_address(network, pair[1], place)
    return choice.sieve(Flows(between=between, port=port_number(choice.port)), number, seed)


def agent_address(network: Network, name: str, place: str) -> str:
    """The one IPv4 address of an agent.

    Raises:
        PlanError: the network has no such agent.
    """
    agents = {node.name: node for node in network.nodes if node.kind is NodeKind.AGENT}
    if name not in agents:
        raise PlanError(
            "plan a fault", place, f"the network has no agent {name!r}",
            f"agents: {', '.join(agents)}",
        )  # fmt: skip
    addresses = [one.address for one in agents[name].interfaces if one.address is not None]
    return addresses[0].partition("/")[0]


def hold_at_scale(hold: Hold, scale: Scale) -> Hold:
    """In slow motion."""
    return Hold(stop_ns=scale.lab_ns(hold.stop_ns), each_ns=scale.lab_ns(hold.each_ns))


def with_gates(network: Network, faults: Iterable[PlannedFault]) -> Network:
    """The network with a gate wherever a fault holds a link, as wide as its longest stop.

    A gate is built with its link: one that came with its fault would lose what is under way.
    """
    holds = [
        (one, one.effect)
        for one in faults
        if isinstance(one, LinkFault) and isinstance(one.effect, Hold)
    ]
    if not holds:
        return network

    def gated(spec: LinkSpec, link: str, way: str) -> LinkSpec:
        stops = [hold.stop_ns for one, hold in holds if link in one.links and getattr(one, way)]
        return spec.model_copy(update={"gate_ns": max(stops)}) if stops else spec

    links = tuple(
        link.model_copy(
            update={
                "forward": gated(link.forward, link.name, "forward"),
                "backward": gated(link.backward, link.name, "backward"),
            }
        )
        for link in network.links
    )
    return network.model_copy(update={"links": links})
