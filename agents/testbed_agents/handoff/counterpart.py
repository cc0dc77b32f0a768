"""RLD as MD knows it: what it was asked for, what it has promised, whether it lives. Pure."""

from __future__ import annotations

from testbed_agents.handoff.action import Send
from testbed_agents.handoff.known import Known
from testbed_agents.handoff.message import Peer, Takeover


class Counterpart:
    """The RLD of one answer.

    Args:
        lead: positions between being level with its news and the takeover; see
            ``choice.lead_tokens``.
        lost: it never took part.
    """

    def __init__(self, lead: int, lost: bool) -> None:
        if lead < 0:
            raise ValueError("a lead is 0 or more positions")
        self.lost = lost
        self.lead = lead
        self.end: int | None = None
        """Its word: where its part ends."""
        self.asked: int | None = None
        """Where it was asked to end."""
        self.awaits_rows = False
        """Whether its rows were asked for and may still come (``incremental-kv``)."""
        self.in_phase = False
        """Whether it has told an id since it was asked."""
        self.load_percent = 0

    def ask(self, req: int, position: int, keep: bool) -> Send:
        """Asks it to emit nothing from ``position`` on."""
        self.asked, self.awaits_rows = position, keep
        return Send(Peer.RELAY, Takeover(req, position, keep))

    def lose(self) -> bool:
        """It is gone, and its rows with it; False when that was known."""
        lost, self.lost, self.awaits_rows = self.lost, True, False
        return not lost

    def owes(self, heard: int) -> bool:
        """Whether it still owes tokens that it emitted, or will."""
        return not self.lost and self.end is not None and heard < self.end

    def leads(self, known: Known) -> bool:
        """Whether this side had better begin its next step when RLD's next id comes.

        Both sides are level then and make a token in about the same time, so a step that
        begins at any other moment stays out of phase with RLD, up to one step, until MD has
        taken over. One id is enough: from there on this side keeps RLD's pace by itself. Who
        is ahead of RLD's ids must not wait for them.
        """
        due = self.asked if self.end is None else self.end
        if self.in_phase or self.lost or due is None:
            return False
        return len(known.tokens) <= known.heard < due
