"""Plan to Compose file: one container a node, two networks a link."""

from __future__ import annotations

from testbed.compose.document import (
    Address,
    Bind,
    BridgeNetwork,
    ComposeFile,
    Ipam,
    Pool,
    Service,
)
from testbed.compose.placement import Placement
from testbed.contract.network import Node
from testbed.contract.plan import Plan
from testbed.contract.role import NodeKind
from testbed.contract.segment import Seat, Segment, segments

RUN = "/mnt/run"
"""The run folder as containers see it."""
_PIDS = 128
_OPTIONS = (
    ("com.docker.network.bridge.inhibit_ipv4", "true"),
    ("com.docker.network.bridge.enable_ip_masquerade", "false"),
)
"""The bridge takes no address: the host is no router between segments."""


def render_compose(plan: Plan, placement: Placement) -> ComposeFile:
    """The Compose file of a plan.

    Raises:
        PlanError: the network cannot be laid out as Docker networks.
    """
    laid_out = segments(plan.network)
    labels = {"testbed.scenario": plan.scenario, "testbed.seed": str(plan.seed)}
    return ComposeFile(
        name=placement.project,
        services={
            node.name: _service(plan, node, placement, laid_out, labels)
            for node in plan.network.nodes
        },
        networks={segment.name: _network(segment, labels) for segment in laid_out},
    )


def _service(
    plan: Plan,
    node: Node,
    placement: Placement,
    laid_out: tuple[Segment, ...],
    labels: dict[str, str],
) -> Service:
    mine = [(segment, seat) for segment in laid_out for seat in segment.seats]
    seats = {segment.name: seat for segment, seat in mine if seat.node == node.name}
    agent = node.kind is NodeKind.AGENT
    program = "testbed_agents.contained" if agent else "testbed.lab.container.fabric"
    return Service(
        image=placement.agent_image if agent else placement.router_image,
        command=("python", "-m", program, RUN, node.name, plan.clock),
        user=f"{placement.user}:{placement.group}" if agent else "0:0",
        cap_add=() if agent else ("NET_ADMIN", "NET_RAW"),
        sysctls=dict(node.sysctls),
        mac_address=_single_mac(seats) if agent else None,
        networks={name: Address(ipv4_address=seat.address) for name, seat in seats.items()},
        volumes=(Bind(source=placement.run, target=RUN),),
        mem_limit=placement.agent_bytes if agent else placement.fabric_bytes,
        pids_limit=_PIDS,
        labels={**labels, "testbed.node": node.name},
    )


def _single_mac(seats: dict[str, Seat]) -> str | None:
    """``mac_address`` of a service is that of its only network."""
    (seat,) = seats.values()
    return seat.mac


def _network(segment: Segment, labels: dict[str, str]) -> BridgeNetwork:
    return BridgeNetwork(
        driver_opts={**dict(_OPTIONS), "com.docker.network.driver.mtu": str(segment.mtu)},
        ipam=Ipam(config=(Pool(subnet=segment.subnet, gateway=segment.gateway),)),
        labels=labels,
    )
