"""The rule of continuous batching: admission, preemption, shares of a step. Pure.

::

    submit ─▶ [ waiting, oldest first ] ─ admit ─▶ [ held ] ─ loaded ─▶ fed step by step
                     ▲                                │
                     └──────── preempt, newest first ─┘

Every sequence that is held arrived before every waiting one: admission takes the oldest
and never skips it, preemption takes the newest. So the oldest of all always keeps its
place and ends; nobody starves.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping

from testbed_agents.batching.limits import Limits
from testbed_agents.batching.sequence import Sequence
from testbed_agents.batching.step import Feed, Preempted, Step


class Batch:
    """Sequences of one decode instance.

    One step at a time: ``plan``, run it, ``complete``; sequences may be admitted, loaded
    and removed while it runs. Misuse (a step planned twice, a sequence submitted twice,
    one that could never be held) raises ValueError.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held: list[Sequence] = []  # by ticket, as is _waiting
        self._waiting: list[Sequence] = []
        self._tickets = 0
        self._stepping = False

    @property
    def held(self) -> tuple[int, ...]:
        """Sequences that hold memory, oldest first."""
        return tuple(one.identity for one in self._held)

    @property
    def waiting(self) -> tuple[int, ...]:
        """Sequences that hold none, oldest first."""
        return tuple(one.identity for one in self._waiting)

    @property
    def kv_bytes(self) -> int:
        """Memory of all that are held, with what the step under way adds."""
        return sum(self._limits.size(one.context + one.planned) for one in self._held)

    def fits(self, end: int) -> bool:
        """Whether a sequence of ``end`` tokens could ever be held."""
        return self._limits.holds(self._limits.size(end))

    def submit(self, sequence: Sequence) -> None:
        """Take a sequence in: it waits now."""
        if any(one.identity == sequence.identity for one in (*self._held, *self._waiting)):
            raise ValueError(f"sequence {sequence.identity} is here already")
        if not self.fits(sequence.end):
            raise ValueError(f"sequence {sequence.identity} can never be held")
        sequence.ticket = self._tickets
        self._tickets += 1
        self._waiting.append(sequence)

    def remove(self, identity: int) -> bool:
        """Forget a sequence (answered, aborted); False when it is not here.

        Legal while a step is under way: its feed is then ignored by ``complete``.
        """
        for sequences in (self._held, self._waiting):
            for index, one in enumerate(sequences):
                if one.identity == identity:
                    del sequences[index]
                    return True
        return False

    def admit(self) -> int | None:
        """The oldest that waits, which holds memory from now on; None while it must wait.

        All that it had before fits, not only its next token: a sequence that computes
        thousands of tokens again would be preempted half way, over and over. The first of
        all needs no headroom.
        """
        if not self._waiting or len(self._held) >= self._limits.max_batch:
            return None
        one = self._waiting[0]
        claimed = sum(self._claim(other) for other in (*self._held, one))
        headroom = self._limits.headroom_tokens * self._limits.bytes_per_token
        if not self._limits.holds(claimed + headroom * len(self._held)):
            return None
        del self._waiting[0]
        one.context, one.loaded = one.kept, False
        self._held.append(one)
        return one.identity

    def loaded(self, identity: int) -> bool:
        """Its kept tokens have been copied in; False where it lost its place meanwhile."""
        for one in self._held:
            if one.identity == identity:
                one.loaded = True
                return True
        return False

    def grow(self, identity: int, tokens: int) -> bool:
        """KV of further tokens has come from elsewhere; False where it has no room.

        Only for a sequence that no step feeds.
        """
        one = next((one for one in self._held if one.identity == identity), None)
        if one is None or not one.loaded:
            return False
        if tokens < 0 or one.planned or one.context + tokens > one.end:
            raise ValueError(f"sequence {identity} cannot grow by {tokens} tokens now")
        if not self._limits.holds(self.kv_bytes + tokens * self._limits.bytes_per_token):
            return False
        one.context += tokens
        one.reached = min(one.end, max(one.reached, one.context + 1))
        return True

    def plan(self, wanted: Mapping[int, int]) -> Step:
        """The next step, where ``wanted`` has the ids that each sequence could be fed.

        Sequences that want none, or are not loaded, keep their memory and are not fed.
        A step that feeds nobody needs no ``complete``.
        """
        if self._stepping:
            raise ValueError("the step before is not complete")
        preempted = self._preempt(wanted)
        fed = [one for one in self._held if _is_fed(one, wanted)]
        for one, tokens in zip(fed, self._shares(fed, wanted), strict=True):
            if one.context + tokens > one.end:
                raise ValueError(f"sequence {one.identity} ends at {one.end} tokens")
            one.planned = tokens
        self._stepping = bool(fed)
        return Step(tuple(Feed(one.identity, one.context, one.planned) for one in fed), preempted)

    def complete(self) -> None:
        """The planned step has run."""
        if not self._stepping:
            raise ValueError("no step was planned")
        self._stepping = False
        for one in self._held:
            one.context += one.planned
            one.planned = 0
            one.reached = min(one.end, max(one.reached, one.context + 1))

    def _preempt(self, wanted: Mapping[int, int]) -> tuple[Preempted, ...]:
        """Drop the newest until each that is fed can take one token."""
        preempted: list[Preempted] = []
        while not self._limits.holds(self._with_one_more_token(wanted)):
            newest = self._held.pop()
            preempted.append(Preempted(newest.identity, max(0, newest.context - newest.kept)))
            newest.context, newest.loaded = 0, False
            bisect.insort(self._waiting, newest, key=_ticket)
        return tuple(preempted)

    def _shares(self, fed: list[Sequence], wanted: Mapping[int, int]) -> list[int]:
        """One token for each, then even shares of what width and memory leave."""
        limits = self._limits
        shares = [1] * len(fed)
        most = {
            index: min(wanted[one.identity], limits.extend_width or wanted[one.identity]) - 1
            for index, one in enumerate(fed)
        }
        left = sum(most.values())
        if limits.kv_bytes and limits.bytes_per_token:
            free = limits.kv_bytes - self._with_one_more_token(wanted)
            left = min(left, free // limits.bytes_per_token)
        hungry = [index for index, tokens in most.items() if tokens]
        while hungry and left:
            each = max(1, left // len(hungry))
            for index in hungry[:left] if each == 1 else hungry:
                given = min(each, most[index], left)
                shares[index] += given
                most[index] -= given
                left -= given
            hungry = [index for index in hungry if most[index]]
        return shares

    def _claim(self, one: Sequence) -> int:
        """What admission counts for a sequence."""
        tokens = one.end if self._limits.whole else max(one.context + one.planned, one.reached)
        return self._limits.size(tokens)

    def _with_one_more_token(self, wanted: Mapping[int, int]) -> int:
        return sum(self._limits.size(one.context + _is_fed(one, wanted)) for one in self._held)


def _is_fed(one: Sequence, wanted: Mapping[int, int]) -> bool:
    return one.loaded and wanted.get(one.identity, 0) > 0


def _ticket(one: Sequence) -> int:
    return one.ticket
