"""``sla:`` and ``prices:``: what is asked of the service, and what its hardware costs.

``benefit-cost ratio = goodput within the service level / cost of the nodes``
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from testbed.contract.record import Record
from testbed.contract.role import Role
from testbed.contract.service import Cost, CostPart, Level
from testbed.scenario.document import KeyPath
from testbed.scenario.entry import Count, Line, Name, Number
from testbed.scenario.nearest import listing
from testbed.units import Duration


class SlaChoice(Record):
    """The service level; the paper's by default."""

    ttft_p90: Duration = Duration(10 * 10**9)
    tpot_p90: Duration = Duration(50 * 10**6)

    def resolve(self) -> Level:
        """The same in nanoseconds."""
        return Level(ttft_ns=self.ttft_p90.ns, tpot_ns=self.tpot_p90.ns)


class NodesChoice(Record):
    """The nodes of one instance."""

    node: Name
    """A name of ``prices.nodes``."""
    count: Count


class InstancesChoice(Record):
    """Nodes of one instance of each role; None only where the plan has no such instance."""

    prefill: NodesChoice | None = None
    relay: NodesChoice | None = None
    decode: NodesChoice | None = None


class PricesChoice(Record):
    """The price table: plain numbers in one unit, so that only their ratios matter."""

    unit: Line
    """What a price of 1 is, for example "one H100 node for an hour"."""
    nodes: dict[Name, Number] = Field(min_length=1)
    """Price of each kind of node, for an hour."""
    instances: InstancesChoice

    def resolve(self, counts: dict[Role, int]) -> Cost:
        """Cost of ``counts`` instances; every node must be known (``unknown_nodes``)."""
        parts = tuple(
            CostPart(
                role=role.value,
                nodes=counts.get(role, 0) * chosen.count,
                node=chosen.node,
                node_price=self.nodes[chosen.node],
            )
            for role, chosen in self.chosen()
        )
        return Cost(unit=self.unit, parts=parts)

    def chosen(self) -> Iterator[tuple[Role, NodesChoice]]:
        """Roles that have nodes."""
        of = self.instances
        for role, nodes in (
            (Role.PREFILL, of.prefill), (Role.RELAY, of.relay), (Role.DECODE, of.decode)
        ):  # fmt: skip
            if nodes is not None:
                yield role, nodes

    def unknown_nodes(self) -> Iterator[tuple[KeyPath, str]]:
        """Each kind of node that has no price, as (key, reason)."""
        for role, nodes in self.chosen():
            if nodes.node not in self.nodes:
                key: KeyPath = ("prices", "instances", role.value, "node")
                yield key, listing(nodes.node, self.nodes)
