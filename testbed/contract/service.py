"""What is asked of a service and what it costs: service level and hardware cost of a run."""

from __future__ import annotations

from pydantic import Field

from testbed.contract.record import Record


class Level(Record):
    """The service level: the paper asks 90 % of the requests for these times."""

    ttft_ns: int = Field(default=10 * 10**9, gt=0)
    """First token after the request was sent."""
    tpot_ns: int = Field(default=50 * 10**6, gt=0)
    """Time per output token after the first."""


class CostPart(Record):
    """The hardware of one role: ``nodes`` in all, each at ``node_price``."""

    role: str
    nodes: int = Field(ge=0)
    node: str
    """Name of the kind of node in the price table."""
    node_price: float = Field(gt=0)
    """In units of the price table, for an hour."""


class Cost(Record):
    """What the hardware of a run costs an hour."""

    unit: str
    """What a price of 1 is, in words: for example one H100 node for an hour."""
    parts: tuple[CostPart, ...]

    @property
    def total(self) -> float:
        """Units an hour, all roles together."""
        return sum(part.nodes * part.node_price for part in self.parts)
