"""One request at RLD: what it holds, from the router's word to its end."""

from __future__ import annotations

from dataclasses import dataclass, field

from testbed.errors import AgentError
from testbed_agents.cache import Match, Refusal, Reservation
from testbed_agents.control.plane import Relay
from testbed_agents.handoff.message import Message
from testbed_agents.handoff.relay import RelayPart
from testbed_agents.model.kv import Kv
from testbed_agents.serving.prompt import Prompt
from testbed_agents.serving.rows import Piece


@dataclass(slots=True)
class Guest:
    """One request at RLD; ``part`` once it can be decoded."""

    relay: Relay
    prompt: Prompt
    match: Match[Piece]
    room: Reservation | Refusal
    part: RelayPart | None = None
    received: Kv | None = None
    """What came from P, once verified; all of the prompt's KV is here then."""
    parts: tuple[Piece, ...] = field(default=())
    kv: Kv | None = None
    """Rows on the device."""
    first: int | None = None
    """Position 0, where P emitted it."""
    early: list[Message] = field(default_factory=list)
    """What MD said before there was a part."""
    told: int = 0
    told_bytes: int = 0
    """Token ids told to MD, and the messages that told them."""

    @property
    def rows(self) -> Kv:
        """KV on the device.

        Raises:
            AgentError: it is not there: a defect of the agent.
        """
        if self.kv is None:
            raise AgentError("decode", f"request {self.relay.req}", "its KV is not here")
        return self.kv
