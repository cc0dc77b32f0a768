"""The propagation delay between two nodes of a plan: the least there can be."""

from __future__ import annotations

import heapq

from testbed.contract.network import Network
from testbed.errors import AnalysisError


def round_trip_ns(network: Network, a: str, b: str) -> int:
    """Propagation delay from node ``a`` to ``b`` and back, over the quickest links.

    Raises:
        AnalysisError: no links lead there.
    """
    return _one_way_ns(network, a, b) + _one_way_ns(network, b, a)


def _one_way_ns(network: Network, start: str, goal: str) -> int:
    steps: dict[str, list[tuple[str, int]]] = {}
    for link in network.links:
        steps.setdefault(link.a.node, []).append((link.b.node, link.forward.delay_ns))
        steps.setdefault(link.b.node, []).append((link.a.node, link.backward.delay_ns))
    reached: set[str] = set()
    frontier = [(0, start)]
    while frontier:
        delay_ns, node = heapq.heappop(frontier)
        if node == goal:
            return delay_ns
        if node in reached:
            continue
        reached.add(node)
        for beyond, more_ns in steps.get(node, []):
            heapq.heappush(frontier, (delay_ns + more_ns, beyond))
    raise AnalysisError(
        "compute metrics",
        f"{start} to {goal}",
        "the plan's network has no links between them",
        "plan.json is not as it was written; run the scenario again",
    )
