"""What faults mean for single nodes of a plan: who is killed, who cannot be disconnected. Pure."""

from __future__ import annotations

from typing import Literal

from testbed.contract.fault import NodeFault, PlannedFault
from testbed.contract.network import Network
from testbed.contract.role import NodeKind
from testbed.errors import PlanError

ATTEMPT = "plan a fault"


def killed_nodes(faults: tuple[PlannedFault, ...]) -> frozenset[str]:
    """Those that a fault kills at some time."""
    return frozenset(
        node
        for one in faults
        if isinstance(one, NodeFault) and one.act == "kill" and one.spans
        for node in one.nodes
    )


def refuse_disconnect(
    fault: NodeFault, network: Network, lab: Literal["mininet", "compose"]
) -> None:
    """A wire is links itself; what is in a container sets its own devices up when it starts.

    Raises:
        PlanError: the fault disconnects what cannot be disconnected in this lab.
    """
    kinds = {node.name: node.kind for node in network.nodes}
    for name in fault.nodes if fault.act == "disconnect" else ():
        if kinds[name] is NodeKind.WIRE:
            links = ", ".join(link.name for link in network.links if link.wire == name)
            raise PlanError(
                ATTEMPT, fault.place, f"{name} is a wire, so it has no links but is some",
                f"take links down instead: kind down, link {links}",
            )  # fmt: skip
        if lab == "compose" and kinds[name] is not NodeKind.AGENT:
            raise PlanError(
                ATTEMPT, fault.place,
                f"{name} is a router, which sets up its devices when it starts",
                "in containers disconnect agents only",
            )  # fmt: skip
