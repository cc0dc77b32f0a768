"""The rule of continuous batching: admission, preemption, shares of a step. Pure.

::

    submit ─▶ [ waiting, oldest first ] ─ admit ─▶ [ running ] ─ complete ─▶ ended
                     ▲                                  │
                     └──────── preempt, newest first ───┘

Every running sequence arrived before every waiting one: admission takes the oldest
and never skips it, preemption takes the newest. So the oldest of all always runs, is
fed in each step, and ends; nobody starves.
"""

from __future__ import annotations

import bisect
from enum import StrEnum

from testbed_agents.batching.limits import Limits
from testbed_agents.batching.sequence import Sequence
from testbed_agents.batching.step import Feed, Step


class Refused(StrEnum):
    """Why a sequence is not taken."""

    TOO_LONG = "too-long"
    """It could never end: its KV alone is more than the memory."""


class Batch:
    """Sequences of one decode instance.

    One step at a time: ``plan``, run it, ``complete``. Misuse (a step planned twice, a
    sequence submitted twice, one that is unknown) raises ValueError.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._running: list[Sequence] = []  # by ticket, as is _waiting
        self._waiting: list[Sequence] = []
        self._tickets = 0
        self._planned: Step | None = None

    @property
    def running(self) -> tuple[int, ...]:
        """Sequences that hold memory, oldest first."""
        return tuple(one.identity for one in self._running)

    @property
    def waiting(self) -> tuple[int, ...]:
        """Sequences that hold none, oldest first."""
        return tuple(one.identity for one in self._waiting)

    @property
    def kv_bytes(self) -> int:
        """Memory of all running sequences."""
        return sum(self._limits.size(one.own) for one in self._running)

    def submit(self, sequence: Sequence) -> Refused | None:
        """Take a sequence in; None when it waits now."""
        if any(one.identity == sequence.identity for one in (*self._running, *self._waiting)):
            raise ValueError(f"sequence {sequence.identity} is here already")
        if not self._limits.holds(self._limits.size(sequence.end - sequence.prefix)):
            return Refused.TOO_LONG
        sequence.ticket = self._tickets
        self._tickets += 1
        self._waiting.append(sequence)
        return None

    def learn(self, identity: int, known: int) -> None:
        """Ids up to position ``known`` have arrived from elsewhere; fewer than before is no news.

        Raises ValueError beyond the end of the sequence.
        """
        one = self._find(identity)
        if known > one.end:
            raise ValueError(f"sequence {identity} ends at {one.end}, not at {known}")
        one.known = max(one.known, known)

    def remove(self, identity: int) -> bool:
        """Forget a sequence (answered, aborted); False when it is not here.

        Legal while a step is under way: its feed is then ignored by ``complete``.
        """
        for sequences in (self._running, self._waiting):
            for index, one in enumerate(sequences):
                if one.identity == identity:
                    del sequences[index]
                    return True
        return False

    def plan(self) -> Step | None:
        """The next step; None when there is nothing to do."""
        if self._planned is not None:
            raise ValueError("the step before is not complete")
        preempted = self._preempt()
        admitted = self._admit()
        if not self._running:
            return None
        shares = self._shares()
        feeds = tuple(
            Feed(one.identity, one.context, tokens)
            for one, tokens in zip(self._running, shares, strict=True)
        )
        self._planned = Step(feeds, admitted, preempted)
        return self._planned

    def complete(self) -> tuple[int, ...]:
        """The planned step has run; returns the sequences that ended, oldest first."""
        if self._planned is None:
            raise ValueError("no step was planned")
        fed = {feed.identity: feed.tokens for feed in self._planned.feeds}
        self._planned = None
        ended: list[int] = []
        for one in self._running:
            one.context += fed.get(one.identity, 0)
            one.known = min(one.end, max(one.known, one.context + 1))
            one.recomputing = one.recomputing and one.pending > 1
            if one.context == one.end:
                ended.append(one.identity)
        self._running = [one for one in self._running if one.context < one.end]
        return tuple(ended)

    def _preempt(self) -> tuple[int, ...]:
        """Drop the newest until each of the others can take one token."""
        preempted: list[int] = []
        while not self._limits.holds(self._with_one_more_token()):
            newest = self._running.pop()
            newest.context = newest.prefix
            newest.recomputing = True
            bisect.insort(self._waiting, newest, key=_ticket)
            preempted.append(newest.identity)
        return tuple(preempted)

    def _admit(self) -> tuple[int, ...]:
        """Let the oldest in while all their known ids fit; the first of all needs no headroom.

        Room for one token would do for a step, but a sequence that computes 64K tokens again
        would be preempted half way, over and over.
        """
        size = sum(self._known_size(one) for one in self._running)
        headroom = self._limits.headroom_tokens * self._limits.bytes_per_token
        admitted: list[int] = []
        for one in self._waiting:
            size += self._known_size(one)
            full = len(self._running) == self._limits.max_batch
            if full or not self._limits.holds(size + headroom * len(self._running)):
                break
            self._running.append(one)
            admitted.append(one.identity)
        del self._waiting[: len(admitted)]
        return tuple(admitted)

    def _shares(self) -> list[int]:
        """One token for each, then even shares of what budget, width and memory leave."""
        limits = self._limits
        shares = [1] * len(self._running)
        left = limits.step_tokens - len(shares)
        if limits.kv_bytes and limits.bytes_per_token:
            room = (limits.kv_bytes - self._with_one_more_token()) // limits.bytes_per_token
            left = min(left, room)
        wanted = {index: self._most(one) - 1 for index, one in enumerate(self._running)}
        hungry = [index for index, tokens in wanted.items() if tokens]
        while hungry and left:
            each = max(1, left // len(hungry))
            for index in hungry[:left] if each == 1 else hungry:
                given = min(each, wanted[index], left)
                shares[index] += given
                wanted[index] -= given
                left -= given
            hungry = [index for index in hungry if wanted[index]]
        return shares

    def _most(self, one: Sequence) -> int:
        width = self._limits.extend_width
        return one.pending if one.recomputing or not width else min(one.pending, width)

    def _known_size(self, one: Sequence) -> int:
        return self._limits.size(one.known - one.prefix)

    def _with_one_more_token(self) -> int:
        return sum(self._limits.size(one.own + 1) for one in self._running)

    def _find(self, identity: int) -> Sequence:
        for one in (*self._running, *self._waiting):
            if one.identity == identity:
                return one
        raise ValueError(f"sequence {identity} is not here")


def _ticket(one: Sequence) -> int:
    return one.ticket
