"""One request at MD: what it holds, from the router's word to its release."""

from __future__ import annotations

from dataclasses import dataclass, field

from testbed.errors import AgentError
from testbed_agents.cache import Match, Refusal, Reservation
from testbed_agents.control.plane import Prepare
from testbed_agents.handoff.main import MainPart
from testbed_agents.model.kv import Kv
from testbed_agents.serving.prompt import Prompt
from testbed_agents.serving.rows import Piece


@dataclass(slots=True)
class Answer:
    """One request at MD."""

    prepare: Prepare
    prompt: Prompt
    match: Match[Piece]
    part: MainPart
    room: Reservation | Refusal
    received: Kv | None = None
    """What came from P, once verified; all of the prompt's KV is here then."""
    parts: tuple[Piece, ...] = field(default=())
    kv: Kv | None = None
    """Rows on the device."""
    began: bool = False
    over: bool = False
    """Whether RLD's part is over: this side has emitted."""
    extended: int = 0
    """Tokens of RLD whose KV was computed here."""

    @property
    def rows(self) -> Kv:
        """KV on the device.

        Raises:
            AgentError: it is not there: a defect of the agent.
        """
        if self.kv is None:
            raise AgentError("decode", f"request {self.prepare.req}", "its KV is not here")
        return self.kv
