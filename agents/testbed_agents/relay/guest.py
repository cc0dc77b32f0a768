"""One request at RLD: what it holds, from the router's word to its end."""

from __future__ import annotations

from dataclasses import dataclass, field

from testbed_agents.control.plane import HeldUp, Relay
from testbed_agents.handoff.message import Message
from testbed_agents.handoff.relay import RelayPart
from testbed_agents.serving.held import Held


@dataclass(slots=True)
class Guest:
    """One request at RLD; ``part`` once it can be decoded."""

    relay: Relay
    held: Held
    part: RelayPart | None = None
    first: int | None = None
    """Position 0, where P emitted it."""
    early: list[Message | HeldUp] = field(default_factory=list)
    """What MD said before there was a part."""
    told: int = 0
    told_bytes: int = 0
    """Token ids told to MD, and the messages that told them."""
