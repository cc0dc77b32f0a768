"""A plan as containers have it that are on their own (plain ``docker compose up``). Pure.

What differs from the same plan under an orchestrator, and why:

- The run folder has another path: what is mounted is the folder of all runs.
- All addresses may begin with another number than 10. They are seen by these containers only,
  but an Engine hands out each address once.
- Routers ask for an agent's hardware address (ARP): Engines choose it in different ways.
- Which leg a connection takes is left to the kernel's own hash seed, as kernels before 6.11 cannot
  be given one.
- Agents' own links carry superframes: only who has NET_ADMIN can make a device split them. Routers
  do so where they send into a link that carries frames.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from testbed.contract.link import LinkSpec
from testbed.contract.network import Link, Network
from testbed.contract.plan import Plan
from testbed.contract.role import NodeKind
from testbed.contract.segment import with_first
from testbed.errors import PlanError

PLANNED_RUN = "/mnt/run"
"""Where agents see the run folder, as plans have it."""
SUPERFRAME = 65_536
"""Bytes of the largest packet of a device that nobody told otherwise (GSO_LEGACY_MAX_SIZE)."""
_ADDRESS = re.compile(r"10(\.\d{1,3}){3}(/\d{1,2})?")
_UNSETTABLE = "net.ipv4.fib_multipath_hash_seed"
Json: TypeAlias = str | int | float | bool | list["Json"] | dict[str, "Json"] | None


def settled(plan: Plan, run: str, first: int = 10) -> Plan:
    """The plan for containers on their own.

    Args:
        run: the run folder as containers see it.
        first: first number of all addresses.

    Raises:
        PlanError: something acts on single frames of an agent's own link.
    """
    moved = Plan.model_validate(_moved(plan.model_dump(mode="json"), run, first))
    return moved.model_copy(update={"network": settled_network(moved.network)})


def settled_network(network: Network) -> Network:
    """The network for containers on their own, at the addresses that it has.

    Raises:
        PlanError: something acts on single frames of an agent's own link.
    """
    agents = {node.name for node in network.nodes if node.kind is NodeKind.AGENT}
    macs = {i.mac for node in network.nodes if node.name in agents for i in node.interfaces}
    nodes = tuple(
        node.model_copy(
            update={"sysctls": tuple(pair for pair in node.sysctls if pair[0] != _UNSETTABLE)}
        )
        for node in network.nodes
    )
    links = tuple(
        _whole(link) if {link.a.node, link.b.node} & agents else link for link in network.links
    )
    neighbours = tuple(n for n in network.neighbours if n.node not in agents and n.mac not in macs)
    return network.model_copy(update={"nodes": nodes, "links": links, "neighbours": neighbours})


def _moved(value: Json, run: str, first: int) -> Json:
    """Every address and every path below the run folder, wherever the plan has one."""
    if isinstance(value, str):
        if _ADDRESS.fullmatch(value):
            return with_first(value, first)
        if value.startswith(f"{PLANNED_RUN}/"):
            return run + value.removeprefix(PLANNED_RUN)
        return value
    if isinstance(value, list):
        return [_moved(item, run, first) for item in value]
    if isinstance(value, dict):
        return {key: _moved(item, run, first) for key, item in value.items()}
    return value


def _whole(link: Link) -> Link:
    """The link for superframes."""
    for spec in (link.forward, link.backward):
        reorders = spec.jitter is not None and spec.jitter.reorder
        if spec.loss or spec.duplicate or spec.corrupt or spec.slot or reorders:
            raise PlanError(
                "lay out containers on their own", f"link {link.name}",
                "something acts on its single frames, and an agent's device splits superframes "
                "only where somebody with NET_ADMIN tells it to",
                "put it on the links between routers, or take: testbed run --lab compose",
            )  # fmt: skip
    return link.model_copy(
        update={"forward": _as_superframes(link.forward),
                "backward": _as_superframes(link.backward)}
    )  # fmt: skip


def _as_superframes(spec: LinkSpec) -> LinkSpec:
    return spec.model_copy(update={"superframe_bytes": max(SUPERFRAME, spec.superframe_bytes)})
