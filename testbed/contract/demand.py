"""What a live machine has to carry for a plan, on its own clock."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from testbed.contract.record import Record


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of a core for one packet over one wire, as measured."""

    superframe_s: float
    frame_s: float


class Demand(Record):
    """Of a plan at its scale: packets while all lines are full, computing on average."""

    superframes_per_s: float = Field(ge=0)
    """Superframes that cross a wire, of all wires together."""
    frames_per_s: float = Field(ge=0)
    """Single frames, likewise."""
    frame_bytes: int = Field(gt=0)
    """Layer-2 bytes of a single frame."""
    computing: float = Field(ge=0)
    """Cores that the real model keeps busy."""
    shortest_ns: int = Field(gt=0)
    """The shortest time that matters, emulated: a line's delay, a decode step, a transfer."""
