"""Which links lead from one node to another, and which leg a connection takes."""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network
from typing import NamedTuple

from testbed.contract.agent import AgentConfig
from testbed.contract.network import Link, Network
from testbed.contract.plan import Plan
from testbed.shaping.multipath import hop_index

_SEED = "net.ipv4.fib_multipath_hash_seed"


class Way(NamedTuple):
    """One direction of a link."""

    link: str
    direction: str

    def __str__(self) -> str:
        return f"{self.link} {self.direction}"


Hop = tuple[Way, ...]
"""The links that may carry it at this point: several where the leg is not known."""


class Ways:
    """Answers for one plan; shortest ways only, as routes are."""

    def __init__(self, plan: Plan) -> None:
        self._network: Network = plan.emulated
        self._agents: dict[str, AgentConfig] = {agent.node: agent for agent in plan.agents}
        self._beside: dict[str, list[tuple[str, Link, Way]]] = {}
        for link in self._network.links:
            for here, there, direction in (
                (link.a.node, link.b.node, "forward"),
                (link.b.node, link.a.node, "backward"),
            ):
                step = (there, link, Way(link.name, direction))
                self._beside.setdefault(here, []).append(step)
        self._seeds = {
            node.name: int(value)
            for node in self._network.nodes
            for name, value in node.sysctls
            if name == _SEED
        }
        self._hops = lru_cache(maxsize=None)(self._find)
        self._legs = lru_cache(maxsize=None)(self._choose)
        self.specs = {
            Way(link.name, name): spec
            for link in self._network.links
            for name, spec in (("forward", link.forward), ("backward", link.backward))
        }

    def between(self, start: str, goal: str) -> tuple[Hop, ...]:
        """Hop by hop, every leg that there is; empty where no links lead there."""
        return self._legs(start, goal, -1)

    def of_connection(self, sender: str, receiver: str, conn: int) -> tuple[Hop, ...]:
        """The links of data connection ``conn`` (-1: not known) from sender to receiver."""
        return self._legs(sender, receiver, conn)

    def delay_ns(self, start: str, goal: str) -> int:
        """Propagation delay one way, over the slowest leg."""
        hops = self.between(start, goal)
        return sum(max(self.specs[way].delay_ns for way in hop) for hop in hops)

    def rate_bps(self, hops: tuple[Hop, ...]) -> int:
        """Of the slowest link on them; 0 where none has a rate."""
        rates = [self.specs[way].rate_bps for hop in hops for way in hop]
        return min((rate for rate in rates if rate), default=0)

    def _find(self, start: str, goal: str) -> tuple[tuple[str, tuple[tuple[Link, Way], ...]], ...]:
        distance = {goal: 0}
        frontier = deque([goal])
        while frontier:
            node = frontier.popleft()
            for there, _, _ in self._beside.get(node, ()):
                if there not in distance:
                    distance[there] = distance[node] + 1
                    frontier.append(there)
        hops: list[tuple[str, tuple[tuple[Link, Way], ...]]] = []
        node = start
        while node != goal and node in distance:
            steps = [one for one in self._beside[node] if distance[one[0]] == distance[node] - 1]
            nearer = min(there for there, _, _ in steps)
            hop = tuple((link, way) for there, link, way in steps if there == nearer)
            hops.append((node, hop))
            node = nearer
        return tuple(hops) if node == goal else ()

    def _choose(self, sender: str, receiver: str, conn: int) -> tuple[Hop, ...]:
        chosen: list[Hop] = []
        for node, hop in self._hops(sender, receiver):
            ways = tuple(way for _, way in hop)
            if len(ways) > 1 and conn >= 0:
                ways = self._leg(node, hop, sender, receiver, conn) or ways
            chosen.append(ways)
        return tuple(chosen)

    def _leg(
        self, node: str, hop: tuple[tuple[Link, Way], ...], sender: str, receiver: str, conn: int
    ) -> Hop:
        one, other = self._agents.get(sender), self._agents.get(receiver)
        seed = self._seeds.get(node)
        if one is None or other is None or seed is None:
            return ()
        target = IPv4Address(other.address)
        for route in self._network.routes:
            if route.node != node or route.destination == "default":
                continue
            if target not in IPv4Network(route.destination, strict=False):
                continue
            source = (one.address, one.pool.source_port + conn)
            index = hop_index(
                source, (other.address, other.data_port), seed, [each.weight for each in route.hops]
            )
            device = route.hops[index].interface
            return tuple(way for link, way in hop if device in (link.a.interface, link.b.interface))
        return ()
