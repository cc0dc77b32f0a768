"""Which packets of a link a fault picks out, and what becomes of them. SI integers.

A packet is picked by its addresses, its TCP port, a flag or its size; of those that fit a seeded
share is hit. Every sieve has a number of its own in its plan: where several act on one link they
look at a packet in that order, whichever came first.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from testbed.contract.record import Record

Port = Literal["data", "control"]
"""What agents listen on: KV over TCP, control over ZeroMQ."""


class Flows(Record):
    """Packets by where they come from and go to; whatever is None fits all."""

    between: tuple[str, str] | None = None
    """Two IPv4 addresses, in either order."""
    port: int | None = Field(default=None, gt=0, lt=65_536)
    """A TCP port of either end."""


class Sieve(Record):
    """What one fault does to single packets of one direction."""

    kind: Literal["syn-loss", "blackhole", "mtu", "mark"]
    number: int = Field(default=0, ge=0, lt=60_000)
    """Of its fault in the plan."""
    flows: Flows = Flows()
    share: float = Field(default=1.0, gt=0, le=1)
    above: int = Field(default=0, ge=0, lt=65_536)
    """Only IP packets of more bytes than this."""
    seed: int = Field(default=0, ge=0, lt=2**64)

    @property
    def marks(self) -> bool:
        """Whether packets go on, with the mark of congestion; else they vanish."""
        return self.kind == "mark"


class Hold(Record):
    """Nothing begins to be sent for the first ``stop_ns`` of every ``each_ns``; nothing is lost."""

    kind: Literal["hold"] = "hold"
    stop_ns: int = Field(gt=0)
    each_ns: int = Field(gt=0)
