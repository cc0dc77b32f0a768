"""MD's newest epoch: from where on it may emit, and how much it has emitted. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from testbed_agents.handoff.message import Emission


class Reign:
    """Begins anew with a higher number whenever more falls to this side.

    Args:
        epoch: number of the epoch before its first, or of its own where it holds one already.
        since: first position of that own epoch; None where somebody else holds it.
        sent: position of the first token that is not emitted yet.
    """

    def __init__(self, epoch: int, since: int | None, sent: int) -> None:
        self.epoch = epoch
        self.since = since
        self.sent = sent

    def begin(self, since: int) -> None:
        """A new epoch from a position on; what was emitted from there on is emitted again."""
        self.epoch += 1
        self.since = self.sent = since

    def emission(self, req: int, tokens: Sequence[int], last: bool) -> Emission | None:
        """All that is known and not yet emitted; None while that is nothing."""
        if self.since is None or self.sent >= len(tokens):
            return None
        begin, self.sent = self.sent, len(tokens)
        return Emission(req, self.epoch, self.since, begin, tuple(tokens[begin:]), last)
