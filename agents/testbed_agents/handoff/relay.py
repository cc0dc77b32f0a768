"""RLD's part of one answer: eager tokens from position 0 until MD takes over. Pure.

::

    EAGER ──Takeover(k)──▶ PROMISED ──position k──▶ ENDED ──▶ released
      └──────cap, time, last token, cancel──────────▲

RLD holds epoch 0. Once it has said where its part ends it keeps its word: it emits every
position before and none behind. Every token goes to the client and, asynchronously, to
MD. In ``incremental-kv`` the KV is held until the increment was sent.
"""

from __future__ import annotations

from testbed.contract.handoff import Occupancy
from testbed_agents.handoff.action import (
    Action,
    Actions,
    Feed,
    Release,
    Send,
    SendIncrement,
)
from testbed_agents.handoff.choice import cap_tokens
from testbed_agents.handoff.message import (
    Emission,
    Ending,
    Evicted,
    Failure,
    Peer,
    Takeover,
    TokenIds,
)


class RelayPart:
    """One request at RLD.

    Args:
        req: request id.
        feed: last token of the prompt; its KV row is not there yet.
        most: output tokens of the whole answer at most.
        stop: tokens that end an answer.
        occupancy: how long RLD may keep it.
        now_ns: when its KV arrived.
    """

    def __init__(
        self, req: int, feed: int, most: int, stop: frozenset[int],
        occupancy: Occupancy, now_ns: int,
    ) -> None:  # fmt: skip
        if most < 1:
            raise ValueError("an answer has at least one token")
        self.req = req
        self.tokens: list[int] = []
        self.end: int | None = None
        self.cause: Ending | None = None
        self.released = False
        self._feed = feed
        self._most = most
        self._stop = stop
        self._occupancy = occupancy
        self._until_ns = now_ns + occupancy.hold_ns
        self._stepping = False
        self._keep = False
        self._sending = False
        self._main_lost: str | None = None

    @property
    def emitted(self) -> int:
        """Positions emitted so far."""
        return len(self.tokens)

    @property
    def ended(self) -> bool:
        """Whether no further step will be made."""
        return self.end is not None and len(self.tokens) >= self.end

    def plan(self) -> Feed | None:
        """The next decode step; None when there is none to make now."""
        if self._stepping or self.ended:
            return None
        self._stepping = True
        return Feed((self.tokens[-1] if self.tokens else self._feed,), len(self.tokens))

    def stepped(self, token: int, load: float, now_ns: int) -> Actions:
        """The planned step's result, at RLD's load (0..1). Discarded when evicted meanwhile."""
        if not self._stepping:
            raise ValueError("no step was planned")
        self._stepping = False
        if self.ended:
            return self._leave()
        position = len(self.tokens)
        self.tokens.append(token)
        last = token in self._stop or position + 1 == self._most
        out: list[Action] = [
            Send(Peer.CLIENT, Emission(self.req, 0, 0, position, (token,), last)),
            Send(Peer.MAIN, TokenIds(self.req, position, (token,), last, _percent(load))),
        ]
        if last:
            out += self._finish(position + 1, Ending.LAST)
        elif self.end is None and (
            position + 1 >= cap_tokens(self._occupancy, load) or now_ns >= self._until_ns
        ):
            out += self._finish(position + 1, Ending.CAP)
        return (*out, *self._leave())

    def taken_over(self, message: Takeover, load: float) -> Actions:
        """MD wants every position from ``message.position`` on. A repetition changes nothing.

        RLD ends there, or where it already is if that is further; its cap still holds.
        """
        if self.end is not None:
            return ()
        self._keep = message.keep
        wanted = min(message.position, cap_tokens(self._occupancy, load), self._most)
        return (
            *self._finish(max(wanted, len(self.tokens)), Ending.TAKEOVER),
            *self._leave(),
        )

    def main_lost(self, reason: str) -> Actions:
        """MD refused or died. RLD goes on alone within its bounds if nothing was promised."""
        if self._main_lost is not None or self.cause in (Ending.LAST, Ending.CANCELLED):
            return ()
        self._main_lost = reason
        self._keep = False
        if self.end is None:
            return ()
        self.end = min(self.end, len(self.tokens))
        return (Send(Peer.CLIENT, Failure(self.req, reason)), *self._leave())

    def redirected(self, load: float) -> Actions:
        """Another MD takes the place of the lost one: tell it all tokens so far."""
        if self._main_lost is None or self.end is not None:
            raise ValueError("no other MD is needed, or it is too late for one")
        self._main_lost = None
        if not self.tokens:
            return ()
        ids = TokenIds(self.req, 0, tuple(self.tokens), False, _percent(load))
        return (Send(Peer.MAIN, ids),)

    def increment_done(self) -> Actions:
        """The increment's transfer ended, well or not: nothing reads the KV any more.

        Owed after every ``SendIncrement``, also when the request was given up meanwhile.
        """
        self._keep = False
        self._sending = False
        return self._leave()

    def cancelled(self) -> Actions:
        """The client left, or MD gave up: stop at once."""
        self._keep = False
        if self.end is None:
            out = self._finish(len(self.tokens), Ending.CANCELLED)
            return (*out, *self._leave())
        self.end = min(self.end, len(self.tokens))
        return self._leave()

    def _finish(self, end: int, cause: Ending) -> Actions:
        """Say where this part ends; from now on that is a promise."""
        self.end, self.cause = end, cause
        if cause is not Ending.TAKEOVER:
            self._keep = False
        evicted = Evicted(self.req, end, cause)
        out: list[Action] = [Send(Peer.MAIN, evicted), Send(Peer.CLIENT, evicted)]
        if self._main_lost is not None and cause is Ending.CAP:
            out.append(Send(Peer.CLIENT, Failure(self.req, self._main_lost)))
        return tuple(out)

    def _leave(self) -> Actions:
        """Release what is held, once, when nothing uses it any more."""
        if self.released or self._stepping or not self.ended:
            return ()
        if self._sending:
            return ()
        if self._keep and self.tokens:
            self._sending = True
            return (SendIncrement(len(self.tokens)),)
        self.released = True
        return (Release(),)


def _percent(load: float) -> int:
    return min(100, max(0, round(load * 100)))
