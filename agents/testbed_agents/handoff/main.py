"""MD's part of one answer: hear RLD's tokens, catch up, take over, go on. Pure.

::

    WAIT ──KV verified──▶ CATCH UP ──caught up: Takeover(k)──▶ ──Evicted(b)──▶ LEAD ──▶ done
      │                      one-shot: Takeover(0), wait for Evicted(b), then extend all
      └── RLD lost ─────────────────────────────────────────────▶ LEAD (as soon as KV is there)

``answers`` are the tokens known here, RLD's or computed here, without a gap; ``fed``
counts the elements of (last prompt token, *answers) whose KV rows are here. MD computes
ahead of RLD's word but emits no position before it holds the authority over it: from
``b`` on, which RLD names, or from the first missing position when RLD is lost.

Without RLD (``relayed`` false) it holds epoch 0 and the machine is a plain decode. Where P
emits position 0 (``prefilled``), epoch 0 is P's and decode begins with epoch 1.
"""

from __future__ import annotations

from testbed.contract.handoff import HandoffMode
from testbed_agents.handoff.action import Action, Actions, Feed, Publish, Release, Send
from testbed_agents.handoff.message import (
    Cancel,
    Emission,
    Ending,
    Evicted,
    Failure,
    Peer,
    Refused,
    Resend,
    Takeover,
    TokenIds,
)


class MainPart:
    """One request at MD.

    Args:
        req: request id.
        feed: last token of the prompt; its KV row is not there yet.
        most: output tokens of the whole answer at most.
        stop: tokens that end an answer.
        lead: positions between being level with RLD's news and the takeover; see
            ``choice.lead_tokens``.
        relayed: whether an RLD takes part.
        prefilled: whether P emits position 0; all rows of the prompt then come with its KV.
    """

    def __init__(
        self, req: int, feed: int, most: int, stop: frozenset[int],
        lead: int = 1, relayed: bool = True, prefilled: bool = False,
    ) -> None:  # fmt: skip
        if most < 1 or lead < 0:
            raise ValueError("needs most >= 1 and lead >= 0")
        self.req = req
        self.mode = HandoffMode.CATCH_UP
        self.answers: list[int] = []
        self.heard = 0
        """RLD's tokens heard without a gap."""
        self.fed = self._base = int(prefilled)
        self.last: int | None = None
        """Position of the token that ends the answer, once known."""
        self.end: int | None = None
        """RLD's word: where its part ends."""
        self.epoch = self._base
        self.since: int | None = None if relayed else self._base
        """First position of this side's newest epoch; None before the first."""
        self.load_percent = 0
        self.outcome: str | None = None
        """``done``, ``cancelled``, or the reason of a failure."""
        self.released = False
        self._feed = feed
        self._most = most
        self._stop = stop
        self._lead = lead
        self._early: dict[int, int] = {}
        self._ready = False
        self._refused = False
        self._asked: int | None = None
        self._in_phase = False
        self._first_due = prefilled
        self._sent = self._base
        self._stepping = 0
        self._whole = False
        self._increment_due = False
        self._relay_lost = not relayed

    @property
    def awaits_increment(self) -> bool:
        """Whether RLD's rows were asked for and may still come (``incremental-kv``)."""
        return self._increment_due

    @property
    def orphaned(self) -> bool:
        """Whether it was refused here while RLD may still answer: RLD's last word decides."""
        return self._refused and self.end is None and not self._relay_lost

    # --- KV -----------------------------------------------------------------------------

    def kv_verified(self, mode: HandoffMode) -> Actions:
        """The prompt's KV is here and whole; ``mode`` is the handoff chosen now."""
        if mode is HandoffMode.DYNAMIC:
            raise ValueError("the choice between modes is made before")
        if self._ready or self._refused:
            raise ValueError("the KV was verified or refused before")
        self._ready = True
        self.mode = mode
        out: list[Action] = [Publish()]
        if self.outcome is None and not self._relay_lost and mode is not HandoffMode.CATCH_UP:
            increment = mode is HandoffMode.INCREMENTAL_KV
            if self.end is None:
                self._increment_due = increment
                out.append(self._ask(0, increment))
        return (*out, *self._flush())

    def kv_refused(self, reason: str) -> Actions:
        """The KV will not come, or is not wanted: RLD is told, and the client if need be."""
        if self._ready or self._refused:
            return ()
        self._refused = True
        if self.outcome is not None:
            return self._leave()
        self.outcome = reason
        out: list[Action] = []
        if not self._relay_lost:
            out.append(Send(Peer.RELAY, Refused(self.req, reason)))
        # An RLD that lives and has promised nothing may still end the answer alone.
        if self._relay_lost or self.end is not None:
            out += self._refuse_client()
        return (*out, *self._leave())

    def increment_arrived(self, rows: int) -> Actions:
        """``incremental-kv``: RLD's rows are behind the prompt's; they need no extend-decode."""
        if not self._increment_due:
            return ()
        self._increment_due = False
        self.fed = rows
        return self._flush()

    def increment_failed(self) -> Actions:
        """``incremental-kv``: its rows will not come; they are computed from the token ids."""
        self._increment_due = False
        return self._flush()

    # --- P ------------------------------------------------------------------------------

    def first_heard(self, token: int) -> Actions:
        """P emits position 0. A repetition changes nothing."""
        if not self._first_due:
            return ()
        self._first_due = False
        self._know(token)
        self.heard = 1
        return self._take_early()

    # --- RLD ----------------------------------------------------------------------------

    def heard_tokens(self, message: TokenIds) -> Actions:
        """Token ids of RLD, perhaps again, perhaps with a gap before them."""
        self.load_percent = message.load_percent
        if not message.position and message.tokens:
            self._first_due = False  # RLD tells another MD everything, P's token too
        for offset, token in enumerate(message.tokens):
            position = message.position + offset
            if position < len(self.answers) and self.answers[position] != token:
                return self._fail(f"diverged at position {position}")
            if position >= self.heard:
                self._early.setdefault(position, token)
        return self._take_early()

    def _take_early(self) -> Actions:
        """What has no gap before it any more."""
        while self.heard in self._early:
            token = self._early.pop(self.heard)
            if self.heard == len(self.answers) and self.last is None:
                self._know(token)
            elif self.heard >= len(self.answers) or self.answers[self.heard] != token:
                return self._fail(f"diverged at position {self.heard}")
            self.heard += 1
            self._in_phase = self._asked is not None
        return self._flush()

    def evicted(self, message: Evicted) -> Actions:
        """RLD's word where its part ends; MD holds everything behind."""
        if self._relay_lost or message.cause is Ending.LAST:
            return self._flush()
        if self.end is not None:
            return ()
        self.end = message.end
        if self._refused:
            return self._refuse_client()
        if message.cause is not Ending.TAKEOVER or not message.end:
            self._increment_due = False  # RLD kept no KV
        if self.since is None:
            self._begin(max(message.end, self._base))
        return self._flush()

    def relay_lost(self) -> Actions:
        """RLD died: whatever it has not told is answered from here."""
        if self._relay_lost:
            return ()
        self._relay_lost = True
        self._increment_due = False
        if self._refused:
            return self._refuse_client()
        if self.outcome is not None:
            return ()
        if self.last is not None and self.heard > self.last:
            return self._flush()  # it told everything; the client asks if it missed some
        if self.since is None or self.heard < self.since:
            self._begin(max(self.heard, self._base))
        return self._flush()

    # --- client -------------------------------------------------------------------------

    def resend(self, message: Resend) -> Actions:
        """The client misses everything from a position on and has no RLD any more."""
        out: list[Action] = []
        if not self._relay_lost:
            out.append(Send(Peer.RELAY, Cancel(self.req)))
            out += self.relay_lost()
        if self.outcome not in (None, "done"):
            return (*out, Send(Peer.CLIENT, Failure(self.req, self.outcome or "")))
        self._begin(message.position)
        return (*out, *self._flush())

    def cancelled(self) -> Actions:
        """The client left. KV that is verified or still comes is published all the same."""
        if self.outcome is None:
            self.outcome = "cancelled"
        return self._leave()

    # --- steps --------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Ids that the next step may feed; 0 while there are none or it must wait."""
        if self._stepping or self.outcome is not None or not self._ready or self._first_due:
            return 0
        if self._increment_due or self.last is not None:
            return 0
        if self.since is None:
            if self.mode is not HandoffMode.CATCH_UP:
                return 0
            if self._asked is not None and len(self.answers) > self._asked:
                return 0
        elif self.mode is not HandoffMode.CATCH_UP and self._awaiting_tokens():
            return 0
        return 1 + len(self.answers) - self.fed

    @property
    def may_wait(self) -> bool:
        """Whether a step of this answer alone had better begin when RLD's next id comes.

        Both sides are level then and make a token in about the same time, so a step that
        begins at any other moment stays out of phase with RLD, up to one step, until MD has
        taken over. One id is enough: from there on this side keeps RLD's pace by itself. Who
        is ahead of RLD's ids must not wait for them.
        """
        due = self._asked if self.end is None else self.end
        if self._in_phase or self._relay_lost or due is None:
            return False
        return len(self.answers) <= self.heard < due

    def plan(self, width: int = 0) -> Feed | None:
        """The next extend-decode step of at most ``width`` tokens (0: no limit), or None."""
        if not self.pending:
            return None
        pending = (self._feed, *self.answers)[self.fed :]
        tokens = pending[:width] if width else pending
        self._stepping, self._whole = len(tokens), len(tokens) == len(pending)
        return Feed(tokens, self.fed + len(tokens) - 1)

    def preempted(self) -> None:
        """All rows but the prompt's are gone. Only between steps."""
        if self._stepping:
            raise ValueError("a step is under way")
        self.fed = self._base

    def stepped(self, token: int) -> Actions:
        """The choice after the last token of the planned step."""
        if not self._stepping:
            raise ValueError("no step was planned")
        width, self._stepping = self._stepping, 0
        self.fed += width
        if self.outcome is not None:
            return self._leave()
        position = self.fed - 1
        if position < len(self.answers):
            if self.answers[position] != token:
                return self._fail(f"diverged at position {position}")
        else:
            self._know(token)
        out: list[Action] = []
        if self.since is None and self._asked is None and self._caught_up(width):
            out.append(self._ask(max(position, self.heard) + self._lead, False))
        return (*out, *self._flush())

    # --- inside -------------------------------------------------------------------------

    def _refuse_client(self) -> Actions:
        """Nobody is left to answer; a client that has it all or is gone needs no word."""
        if self.outcome in (None, "done", "cancelled"):
            return ()
        return (Send(Peer.CLIENT, Failure(self.req, self.outcome or "")),)

    def _know(self, token: int) -> None:
        """The next token of the answer."""
        if self.last is not None:
            return
        self.answers.append(token)
        if token in self._stop or len(self.answers) == self._most:
            self.last = len(self.answers) - 1

    def _awaiting_tokens(self) -> bool:
        """Whether RLD still owes tokens that it emitted."""
        return not self._relay_lost and self.end is not None and self.heard < self.end

    def _caught_up(self, width: int) -> bool:
        """Whether the next step is a plain decode step, or will never be a narrower one.

        The latter where RLD makes several tokens in one step of MD: then each step is as
        wide as the last. An answer whose end is known needs no takeover.
        """
        backlog = 1 + len(self.answers) - self.fed
        return self.last is None and (backlog <= 1 or (self._whole and backlog >= width))

    def _ask(self, position: int, keep: bool) -> Send:
        self._asked = position
        return Send(Peer.RELAY, Takeover(self.req, position, keep))

    def _begin(self, since: int) -> None:
        """A new epoch of this side."""
        self.epoch += 1
        self.since = self._sent = since

    def _flush(self) -> Actions:
        """Emit what this side holds and knows; end when nothing is left to do."""
        if self.outcome not in (None, "done"):
            return self._leave()
        out: list[Action] = []
        if self.since is not None and self._sent < len(self.answers):
            begin = self._sent
            tokens = tuple(self.answers[begin:])
            self._sent = len(self.answers)
            last = self.last is not None
            message = Emission(self.req, self.epoch, self.since, begin, tokens, last)
            out.append(Send(Peer.CLIENT, message))
        told = self.heard if self.since is None else max(self._sent, self.heard)
        if self.last is not None and told > self.last:
            self.outcome = "done"
        return (*out, *self._leave())

    def _fail(self, reason: str) -> Actions:
        """Two engines disagree: no answer is better than a wrong one."""
        if self.outcome is not None:
            return ()
        self.outcome = reason
        return (
            Send(Peer.RELAY, Cancel(self.req)),
            Send(Peer.CLIENT, Failure(self.req, reason)),
            *self._leave(),
        )

    def _leave(self) -> Actions:
        """Release what is held, once: after the end, the fate of the KV and any step."""
        if self.released or self.outcome is None or self._stepping:
            return ()
        if not (self._ready or self._refused):
            return ()
        self.released = True
        return (Release(),)
