"""MD's part of one answer: hear RLD's tokens, catch up, take over, go on. Pure.

::

    WAIT ──KV verified──▶ CATCH UP ──caught up: Takeover(k)──▶ ──Evicted(b)──▶ LEAD ──▶ done
      │                      one-shot: Takeover(0), wait for Evicted(b), then extend all
      └── RLD lost ─────────────────────────────────────────────▶ LEAD (as soon as KV is there)

MD computes ahead of RLD's word but emits no position before it holds the authority over
it: from ``b`` on, which RLD names, or from the first missing position when RLD is lost.

Without RLD (``relayed`` false) it holds epoch 0 and the machine is a plain decode. Where P
emits position 0 (``prefilled``), epoch 0 is P's and decode begins with epoch 1.
"""

from __future__ import annotations

from testbed.contract.handoff import HandoffMode
from testbed_agents.handoff.action import Action, Actions, Feed, Publish, Release, Send
from testbed_agents.handoff.counterpart import Counterpart
from testbed_agents.handoff.known import Known
from testbed_agents.handoff.message import (
    Cancel,
    Ending,
    Evicted,
    Failure,
    Peer,
    Refused,
    Resend,
    TokenIds,
)
from testbed_agents.handoff.reign import Reign
from testbed_agents.handoff.rows import Rows


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
        self.req = req
        self.mode = HandoffMode.CATCH_UP
        self._base = int(prefilled)
        self.known = Known(most, stop)
        self.rows = Rows(feed, self._base)
        self.other = Counterpart(lead, lost=not relayed)
        self.reign = Reign(self._base, None if relayed else self._base, self._base)
        self.outcome: str | None = None
        """``done``, ``cancelled``, or the reason of a failure."""
        self.released = False
        self._ready = False
        self._refused = False
        self.awaits_first = prefilled
        """Whether position 0, which P emits, is not known yet."""
        self._whole = False

    @property
    def orphaned(self) -> bool:
        """Whether it was refused here while RLD may still answer: RLD's last word decides."""
        return self._refused and self.other.end is None and not self.other.lost

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
        free = self.outcome is None and not self.other.lost and self.other.end is None
        if free and mode is not HandoffMode.CATCH_UP:
            out.append(self.other.ask(self.req, 0, mode is HandoffMode.INCREMENTAL_KV))
        return (*out, *self._flush())

    def kv_refused(self, reason: str) -> Actions:
        """The KV, or P's first token, will not come: RLD is told, and the client if need be."""
        if self._refused or (self._ready and not self.awaits_first):
            return ()
        self._refused = True
        if self.outcome is not None:
            return self._leave()
        self.outcome = reason
        out: list[Action] = []
        if not self.other.lost:
            out.append(Send(Peer.RELAY, Refused(self.req, reason)))
        # An RLD that lives and has promised nothing may still end the answer alone.
        if self.other.lost or self.other.end is not None:
            out += self._refuse_client()
        return (*out, *self._leave())

    def increment_arrived(self, rows: int) -> Actions:
        """``incremental-kv``: RLD's rows are behind the prompt's; they need no extend-decode."""
        if not self.other.awaits_rows:
            return ()
        self.other.awaits_rows = False
        self.rows.fed = rows
        return self._flush()

    def increment_failed(self) -> Actions:
        """``incremental-kv``: its rows will not come; they are computed from the token ids."""
        self.other.awaits_rows = False
        return self._flush()

    # --- P ------------------------------------------------------------------------------

    def first_heard(self, token: int) -> Actions:
        """P emits position 0. A repetition changes nothing."""
        if not self.awaits_first:
            return ()
        self.awaits_first = False
        self.known.add(token)
        self.known.heard = 1
        return self._hear(1, ())

    # --- RLD ----------------------------------------------------------------------------

    def heard_tokens(self, message: TokenIds) -> Actions:
        """Token ids of RLD, perhaps again, perhaps with a gap before them."""
        self.other.load_percent = message.load_percent
        return self._hear(message.position, message.tokens)

    def evicted(self, message: Evicted) -> Actions:
        """RLD's word where its part ends; MD holds everything behind."""
        if self.other.lost or message.cause is Ending.LAST:
            return self._flush()
        if self.other.end is not None:
            return ()
        self.other.end = message.end
        if self._refused:
            return self._refuse_client()
        if message.cause is not Ending.TAKEOVER or not message.end:
            self.other.awaits_rows = False  # RLD kept no KV
        if self.reign.since is None:
            self.reign.begin(max(message.end, self._base))
        return self._flush()

    def relay_lost(self) -> Actions:
        """RLD died: whatever it has not told is answered from here."""
        if not self.other.lose():
            return ()
        if self._refused:
            return self._refuse_client()
        if self.outcome is not None:
            return ()
        if self.known.last is not None and self.known.heard > self.known.last:
            return self._flush()  # it told everything; the client asks if it missed some
        if self.reign.since is None or self.known.heard < self.reign.since:
            self.reign.begin(max(self.known.heard, self._base))
        return self._flush()

    # --- client -------------------------------------------------------------------------

    def resend(self, message: Resend) -> Actions:
        """The client misses everything from a position on and has no RLD any more."""
        out: list[Action] = []
        if not self.other.lost:
            out.append(Send(Peer.RELAY, Cancel(self.req)))
            out += self.relay_lost()
        if self.outcome not in (None, "done"):
            return (*out, Send(Peer.CLIENT, Failure(self.req, self.outcome or "")))
        self.reign.begin(message.position)
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
        if self.rows.stepping or self.outcome is not None or not self._ready or self.awaits_first:
            return 0
        if self.other.awaits_rows or self.known.last is not None:
            return 0
        if self.reign.since is None:
            if self.mode is not HandoffMode.CATCH_UP:
                return 0
            if self.other.asked is not None and len(self.known.tokens) > self.other.asked:
                return 0
        elif self.mode is not HandoffMode.CATCH_UP and self.other.owes(self.known.heard):
            return 0
        return self.rows.behind(len(self.known.tokens))

    @property
    def may_wait(self) -> bool:
        """Whether a step of this answer alone had better begin when RLD's next id comes."""
        return self.other.leads(self.known)

    def plan(self, width: int = 0) -> Feed | None:
        """The next extend-decode step of at most ``width`` tokens (0: no limit), or None."""
        pending = self.pending
        if not pending:
            return None
        feed = self.rows.plan(self.known.tokens, width)
        self._whole = len(feed.tokens) == pending
        return feed

    def preempted(self) -> None:
        """All rows but the prompt's are gone. Only between steps."""
        self.rows.preempted()

    def stepped(self, token: int) -> Actions:
        """The choice after the last token of the planned step."""
        width, position = self.rows.stepping, self.rows.stepped()
        if self.outcome is not None:
            return self._leave()
        if not self.known.compute(position, token):
            return self._fail(f"diverged at position {position}")
        out: list[Action] = []
        if self.reign.since is None and self.other.asked is None and self._caught_up(width):
            due = max(position, self.known.heard) + self.other.lead
            out.append(self.other.ask(self.req, due, False))
        return (*out, *self._flush())

    # --- inside -------------------------------------------------------------------------

    def _refuse_client(self) -> Actions:
        """Nobody is left to answer; a client that has it all or is gone needs no word."""
        if self.outcome in (None, "done", "cancelled"):
            return ()
        return (Send(Peer.CLIENT, Failure(self.req, self.outcome or "")),)

    def _hear(self, first: int, tokens: tuple[int, ...]) -> Actions:
        """Others told tokens of the answer."""
        before = self.known.heard
        wrong = self.known.hear(first, tokens)
        if self.known.heard > before:
            self.other.in_phase = self.other.asked is not None
        return self._flush() if wrong is None else self._fail(f"diverged at position {wrong}")

    def _caught_up(self, width: int) -> bool:
        """Whether the next step is a plain decode step, or will never be a narrower one.

        The latter where RLD makes several tokens in one step of MD: then each step is as
        wide as the last. An answer whose end is known needs no takeover.
        """
        backlog = self.rows.behind(len(self.known.tokens))
        return self.known.last is None and (backlog <= 1 or (self._whole and backlog >= width))

    def _flush(self) -> Actions:
        """Emit what this side holds and knows; end when nothing is left to do."""
        if self.outcome not in (None, "done"):
            return self._leave()
        out: list[Action] = []
        message = self.reign.emission(self.req, self.known.tokens, self.known.last is not None)
        if message is not None:
            out.append(Send(Peer.CLIENT, message))
        told, last = self.known.heard, self.known.last
        if self.reign.since is not None:
            told = max(self.reign.sent, told)
        if last is not None and told > last:
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
        if self.released or self.outcome is None or self.rows.stepping:
            return ()
        if not (self._ready or self._refused):
            return ()
        self.released = True
        return (Release(),)
