"""What the next step does, as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Feed:
    """``tokens`` ids of a sequence from ``start`` on; ``context`` = ``start`` tokens have KV."""

    identity: int
    start: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step: who is fed what, who joined, whose KV is dropped before it.

    A preempted sequence loses all KV beyond its prefix and waits to compute it again.
    """

    feeds: tuple[Feed, ...]
    admitted: tuple[int, ...]
    preempted: tuple[int, ...]

    @property
    def batch(self) -> int:
        """Sequences in the step."""
        return len(self.feeds)

    @property
    def context(self) -> int:
        """Tokens of context over all of them, before the step."""
        return sum(feed.start for feed in self.feeds)

    @property
    def extra(self) -> int:
        """Tokens beyond one a sequence."""
        return sum(feed.tokens - 1 for feed in self.feeds)
