"""Does a machine carry a plan on its own clock, and if not, what would fit? Arithmetic only."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.contract.demand import Costs, Demand
from testbed.contract.scale import Scale

MOST = 0.5
"""Share of a core that packets and computing may need; the rest is for what is not counted:
acknowledgements, digests, schedulers, and whoever else uses the machine."""


REFERENCE = Costs(superframe_s=250e-6, frame_s=120e-6)
"""Of the lab guest on one of two busy cores, rounded up; scales of shipped scenarios fit it."""


@dataclass(frozen=True, slots=True)
class Headroom:
    """What a plan needs of a core, and scales that would fit.

    Attributes:
        packets, computing: shares of one core.
        size: largest size that fits at the same pace; None where no size does.
        slow: least slow motion that fits at the same size.
    """

    packets: float
    computing: float
    size: float | None
    slow: float

    @property
    def needed(self) -> float:
        """Share of one core."""
        return self.packets + self.computing

    @property
    def fits(self) -> bool:
        """Whether enough is left."""
        return self.needed <= MOST


def headroom(demand: Demand, costs: Costs, scale: Scale) -> Headroom:
    """Everything in slow motion needs as much less; smaller sizes have fewer packets.

    That smaller sizes may come in smaller packets is left out: the size is about right.
    """
    packets = demand.superframes_per_s * costs.superframe_s + demand.frames_per_s * costs.frame_s
    left = MOST - demand.computing
    size = min(1.0, scale.size * left / packets) if packets > 0 and left > 0 else None
    if packets == 0 and left >= 0:
        size = 1.0
    needed = packets + demand.computing
    return Headroom(
        packets=packets,
        computing=demand.computing,
        size=size,
        slow=max(1.0, scale.slow * needed / MOST),
    )
