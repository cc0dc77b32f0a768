"""What a decode instance holds of one prompt: a lock, room, KV on the host and on the device."""

from __future__ import annotations

from dataclasses import dataclass, field

from testbed.errors import AgentError
from testbed_agents.cache import Match, Refusal, Reservation
from testbed_agents.model.kv import Kv
from testbed_agents.serving.prompt import Prompt
from testbed_agents.serving.rows import Piece


@dataclass(slots=True)
class Held:
    """From the router's word to the release."""

    prompt: Prompt
    match: Match[Piece]
    room: Reservation | Refusal
    received: Kv | None = None
    """What came from P, once verified; all of the prompt's KV is on the host then."""
    parts: tuple[Piece, ...] = field(default=())
    """All blocks of the prompt, once put together."""
    kv: Kv | None = None
    """Rows on the device."""

    @property
    def missing(self) -> int:
        """Blocks that P has to send."""
        return self.prompt.blocks - self.match.blocks

    @property
    def kept(self) -> str:
        """Word of the note to the router: whether what comes will be found later."""
        return "matched" if isinstance(self.room, Reservation) else "unkept"

    @property
    def rows(self) -> Kv:
        """KV on the device.

        Raises:
            AgentError: it is not there: a defect of the agent.
        """
        if self.kv is None:
            raise AgentError("decode", f"{self.prompt.blocks} blocks", "its KV is not here")
        return self.kv

    def give_back(self) -> None:
        """The lock, and the room that was not published into. Once is all there is."""
        if isinstance(self.room, Reservation) and self.room.is_open:
            self.room.cancel()
        self.match.release()
        self.received = None
        self.kv = None
