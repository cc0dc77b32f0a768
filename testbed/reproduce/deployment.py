"""What deployments cost: nodes by kind, priced relative to an H100 node.

Costs and benefit-cost ratios are computed by the code behind the metric ``bcr``, for
deployments of any size: a run may stand for a larger one.

The paper's prices are not public. Its benefit-cost ratio (BCR) gains of 32.4 and 37.5 %, its
rates and its node counts imply that an H200 node costs 1.21 to 1.31 H100 nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

from testbed.contract.role import Role
from testbed.contract.service import Cost, CostPart
from testbed.errors import AnalysisError
from testbed.metrics.goodput import benefit_cost

RATIOS = (1.00, 1.21, 1.26, 1.31, 1.50, 2.00)
"""Price of an H200 node over that of an H100 node; 1.21 to 1.31 is implied, 1.26 its middle."""
IMPLIED = (1.21, 1.31)
P_NODES, RLD_NODES, D_NODES, MD_NODES = 4, 3, 3, 2


@dataclass(frozen=True, slots=True)
class Deployment:
    """Instances by role; P, RLD and D on H100 nodes, MD on H200 nodes."""

    prefill: int
    relay: int
    main: int
    decode: int

    def cost(self, ratio: float) -> Cost:
        """In H100 nodes, for an hour."""
        parts = (
            (Role.PREFILL, self.prefill * P_NODES, "h100", 1.0),
            (Role.RELAY, self.relay * RLD_NODES, "h100", 1.0),
            (Role.DECODE, self.decode * D_NODES, "h100", 1.0),
            (Role.DECODE, self.main * MD_NODES, "h200", ratio),
        )
        return Cost(
            unit="one H100 node for an hour",
            parts=tuple(
                CostPart(role=role.value, nodes=nodes, node=node, node_price=price)
                for role, nodes, node, price in parts
            ),
        )

    def relay_share(self, ratio: float) -> float:
        """The part of the cost that is RLD's."""
        return self.relay * RLD_NODES / self.cost(ratio).total


PDD = Deployment(prefill=10, relay=1, main=16, decode=0)
"""43 H100 and 32 H200 nodes."""
IDC = Deployment(prefill=10, relay=0, main=0, decode=16)
"""88 H100 nodes."""


def gain(own_rps: float, base_rps: float, ratio: float) -> float:
    """How much higher the BCR of PDD is than that of one data centre, as a share.

    Raises:
        AnalysisError: one data centre gives no answer within the level.
    """
    own = benefit_cost(PDD.cost(ratio), own_rps)
    base = benefit_cost(IDC.cost(ratio), base_rps)
    if own is None or not base:
        raise AnalysisError("compare costs", "IDC-PD", "it gives no answer within the level")
    return own / base - 1
