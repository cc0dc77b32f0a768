"""KV rows of one answer behind its prompt, alike at RLD and MD. Pure.

``fed`` counts the elements of (last prompt token, *answer) whose rows are here. A preemption
takes them, and they are fed again before the next token comes. Where P emits position 0 the
row of the last prompt token comes with the prompt's: ``base`` is 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from testbed_agents.handoff.action import Feed


class Rows:
    """What has a row, and the step under way."""

    def __init__(self, feed: int, base: int) -> None:
        self.fed = base
        self.stepping = 0
        """Tokens of the step under way; 0 between steps."""
        self._feed = feed
        self._base = base

    def behind(self, answers: int) -> int:
        """Elements without a row, where so many tokens of the answer are known."""
        return 1 + answers - self.fed

    def plan(self, answers: Sequence[int], width: int) -> Feed:
        """A step that feeds at most ``width`` elements (0: no limit)."""
        pending = (self._feed, *answers)[self.fed :]
        tokens = pending[:width] if width else pending
        self.stepping = len(tokens)
        return Feed(tokens, self.fed + len(tokens) - 1)

    def stepped(self) -> int:
        """The planned step has run; returns the position of the token that was chosen."""
        if not self.stepping:
            raise ValueError("no step was planned")
        self.fed += self.stepping
        self.stepping = 0
        return self.fed - 1

    def preempted(self) -> None:
        """All rows but the prompt's are gone. Only between steps."""
        if self.stepping:
            raise ValueError("a step is under way")
        self.fed = self._base
