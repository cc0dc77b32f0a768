"""RLD's part of one answer: eager tokens from position 0 until MD takes over. Pure.

::

    EAGER ──Takeover(k)──▶ PROMISED ──position k──▶ ENDED ──▶ released
      └──────cap, time, last token, cancel──────────▲

RLD holds epoch 0, or epoch 1 where P has emitted position 0 (``first``). Once it has said
where its part ends it keeps its word: it emits every position before and none behind.
Every token goes to the client and, asynchronously, to MD. In ``incremental-kv`` the KV
is held until the increment was sent.
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
from testbed_agents.handoff.rows import Rows

STAY = 2
"""How many times its bounds RLD may stay where the WAN stalls: no longer, for others wait."""


class RelayPart:
    """One request at RLD.

    Args:
        req: request id.
        feed: last token of the prompt; its KV row is not there yet.
        most: output tokens of the whole answer at most.
        stop: tokens that end an answer.
        occupancy: how long RLD may keep it.
        now_ns: when its KV arrived.
        first: position 0, where P emitted it and its row came with the prompt's.
    """

    def __init__(
        self, req: int, feed: int, most: int, stop: frozenset[int],
        occupancy: Occupancy, now_ns: int, first: int | None = None,
    ) -> None:  # fmt: skip
        if most < 1:
            raise ValueError("an answer has at least one token")
        self.req = req
        self.tokens: list[int] = [] if first is None else [first]
        self.end: int | None = None
        self.cause: Ending | None = None
        self.released = False
        self._base = len(self.tokens)
        self.rows = Rows(feed, self._base)
        self._most = most
        self._stop = stop
        self._occupancy = occupancy
        self._until_ns = now_ns + occupancy.hold_ns
        self._stay = 1
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

    @property
    def pending(self) -> int:
        """Ids that the next step may feed: one, or more after a preemption; 0 for none."""
        idle = self.rows.stepping or self.ended
        return 0 if idle else self.rows.behind(len(self.tokens))

    def begun(self) -> Actions:
        """Its KV is here. P's first token may have been the whole answer."""
        if not self.tokens or self.end is not None or not self._is_last(0):
            return ()
        return (*self._finish(1, Ending.LAST), *self._leave())

    def plan(self, width: int = 0) -> Feed | None:
        """The next decode step of at most ``width`` ids (0: no limit); None for none now."""
        return self.rows.plan(self.tokens, width) if self.pending else None

    def preempted(self) -> None:
        """Its rows behind the prompt's are gone. Only between steps."""
        self.rows.preempted()

    def stepped(self, token: int, load: float, now_ns: int) -> Actions:
        """The planned step's result, at RLD's load (0..1). Discarded when evicted meanwhile."""
        position = self.rows.stepped()
        if self.ended or position < len(self.tokens):
            return self._leave()
        self.tokens.append(token)
        last, base = self._is_last(position), self._base
        out: list[Action] = [
            Send(Peer.CLIENT, Emission(self.req, base, base, position, (token,), last)),
            Send(Peer.MAIN, TokenIds(self.req, position, (token,), last, _percent(load))),
        ]
        if last:
            out += self._finish(position + 1, Ending.LAST)
        elif self.end is None and (position + 1 >= self._cap(load) or now_ns >= self._until_ns):
            out += self._finish(position + 1, Ending.CAP)
        return (*out, *self._leave())

    def taken_over(self, message: Takeover, load: float) -> Actions:
        """MD wants every position from ``message.position`` on. A repetition changes nothing.

        RLD ends there, or where it already is if that is further; its cap still holds. One
        that was preempted ends where it is: MD need not wait until it comes back. To an MD
        that is given up nothing is promised.
        """
        if self.end is not None or self._main_lost is not None:
            return ()
        self._keep = message.keep
        lacks = self.rows.fed < len(self.tokens)
        wanted = min(message.position, self._cap(load), self._most)
        wanted = 0 if lacks and not self.rows.stepping else wanted
        return (
            *self._finish(max(wanted, len(self.tokens)), Ending.TAKEOVER),
            *self._leave(),
        )

    def held_up(self) -> bool:
        """The WAN, and not the client, makes MD late: RLD may go on ``STAY`` times as far.

        Returns whether that is news: it is said once, and not after its part has an end.
        """
        if self.end is not None or self._stay > 1:
            return False
        self._stay = STAY
        self._until_ns += (STAY - 1) * self._occupancy.hold_ns
        return True

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

    def _cap(self, load: float) -> int:
        return self._stay * cap_tokens(self._occupancy, load)

    def _is_last(self, position: int) -> bool:
        return self.tokens[position] in self._stop or position + 1 == self._most

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
        if self.released or self.rows.stepping or not self.ended:
            return ()
        if self._sending:
            return ()
        if self._keep and self.tokens and self.rows.fed >= len(self.tokens):
            self._sending = True
            return (SendIncrement(len(self.tokens)),)
        self.released = True
        if self._keep and self.tokens:  # preempted: its rows are gone, MD computes them
            return (Send(Peer.MAIN, Failure(self.req, "preempted")), Release())
        return (Release(),)


def _percent(load: float) -> int:
    return min(100, max(0, round(load * 100)))
