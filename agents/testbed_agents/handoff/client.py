"""The client's part: each position once, in order, from who holds it. Pure.

An emission that comes early (MD's first token may overtake RLD's last) waits for the
positions before it; one of an epoch that a newer one has replaced is fenced off.
"""

from __future__ import annotations

from dataclasses import dataclass

from testbed_agents.handoff.action import Actions, Send
from testbed_agents.handoff.authority import Authority
from testbed_agents.handoff.message import (
    Emission,
    Ending,
    Evicted,
    Peer,
    Resend,
)


@dataclass(frozen=True, slots=True)
class Delivered:
    """One token that the user sees, and the epoch that it is from."""

    position: int
    token: int
    epoch: int


class ClientPart:
    """One answer as the user sees it.

    Args:
        req: request id.
        relayed: whether RLD holds the first epoch of decode; else MD does.
        prefilled: whether P holds epoch 0; decode then begins with epoch 1.
    """

    def __init__(self, req: int, relayed: bool = True, prefilled: bool = False) -> None:
        self.req = req
        first = Peer.RELAY if relayed else Peer.MAIN
        self.authority = Authority(Peer.PREFILL if prefilled else first)
        if prefilled:  # known from the start: MD's word of a later epoch may come first
            self.authority.begin(1, 1, first)
        self.delivered: list[Delivered] = []
        self.outcome: str | None = None
        """``done``, or why there is none: nothing is accepted any more."""
        self.fenced = 0
        """Tokens dropped because a newer epoch holds their position."""
        self._waiting: dict[int, Delivered] = {}
        self._last: int | None = None
        self._relay_end: int | None = None
        self._relay_cause: Ending | None = None
        self._relay_lost = not relayed

    @property
    def tokens(self) -> tuple[int, ...]:
        """The answer so far."""
        return tuple(one.token for one in self.delivered)

    def accept(self, message: Emission) -> tuple[Delivered, ...]:
        """Tokens that the user sees now, in order; empty when they wait, repeat or are fenced."""
        if self.outcome is not None:
            return ()
        if not self.authority.knows(message.epoch):
            if message.epoch < self.authority.newest.number:
                self.fenced += len(message.tokens)
                return ()
            self.authority.begin(message.epoch, message.since, Peer.MAIN)
            self._fence()
        for offset, token in enumerate(message.tokens):
            position = message.position + offset
            if position < len(self.delivered) or position in self._waiting:
                continue  # again
            if self.authority.may_emit(message.epoch, position):
                self._waiting[position] = Delivered(position, token, message.epoch)
                if message.last and offset + 1 == len(message.tokens):
                    self._last = position
            else:
                self.fenced += 1
        return self._deliver()

    def evicted(self, message: Evicted) -> None:
        """RLD says where its part ends; from there on everything depends on MD."""
        if self._relay_end is None or message.cause is Ending.LAST:
            self._relay_end, self._relay_cause = message.end, message.cause

    def relay_lost(self) -> Actions:
        """RLD died: what it has not delivered is asked from MD."""
        if self.outcome is not None or self._relay_lost:
            return ()
        self._relay_lost = True
        missing = len(self.delivered)
        handed = self._relay_end is not None and self._relay_cause is not Ending.LAST
        if handed and missing >= (self._relay_end or 0):
            return ()  # its part was complete
        return (Send(Peer.MAIN, Resend(self.req, missing)),)

    def _deliver(self) -> tuple[Delivered, ...]:
        """Everything that has no gap before it; the end of the answer ends the stream."""
        out: list[Delivered] = []
        while (one := self._waiting.pop(len(self.delivered), None)) is not None:
            self.delivered.append(one)
            out.append(one)
        if self._last is not None and len(self.delivered) > self._last:
            self.outcome = "done"
            self._waiting.clear()
        return tuple(out)

    def _fence(self) -> None:
        """A new epoch began: what waits from an older one behind its start is void."""
        late = [
            position
            for position, one in self._waiting.items()
            if not self.authority.may_emit(one.epoch, position)
        ]
        for position in late:
            del self._waiting[position]
            self.fenced += 1
            if position == self._last:
                self._last = None
