"""One sequence of a batch, in token counts.

::

    0 ────── prefix ────────── context ───────── known ─────────── end
      shared cache │  own KV   │  ids to feed  │  not known yet  │
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Sequence:
    """Token counts of one sequence; every count starts at the first token of the prompt.

    ``prefix`` tokens lie in a shared cache that counts its own bytes and keeps them
    through a preemption. ``known`` ids can be fed; one more is known after each step
    that feeds them all, because that step yields the next token. The sequence ends when
    ``end`` tokens have KV, that is: when the step that yields its last token is complete.
    """

    identity: int
    context: int
    known: int
    end: int
    prefix: int = 0
    recomputing: bool = False
    ticket: int = -1
    """Order of arrival; set when submitted."""

    def __post_init__(self) -> None:
        if not 0 <= self.prefix <= self.context < self.known <= self.end:
            raise ValueError(
                f"sequence {self.identity}: 0 <= prefix <= context < known <= end does not hold"
            )

    @property
    def pending(self) -> int:
        """Ids that are known and have no KV yet."""
        return self.known - self.context

    @property
    def own(self) -> int:
        """Tokens whose KV this sequence holds itself."""
        return self.context - self.prefix
