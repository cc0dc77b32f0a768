"""One sequence of a batch, in token counts.

::

    0 ───────── kept ──────────── context ───────────────────── end
      on the host │  computed here  │  not there yet            │
      too: copied │  and computed   │
      in          │  again if lost  │
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Sequence:
    """Token counts of one sequence; every count starts at the first token of the prompt.

    The KV of its first ``kept`` tokens lies on the host as long as the sequence lives:
    it is copied in when the sequence is admitted, and again after a preemption. What lies
    behind is computed, and computed again. It never has more than ``end`` tokens.
    """

    identity: int
    kept: int
    end: int
    context: int = field(default=0, init=False)
    """Tokens with KV on the device."""
    reached: int = field(default=0, init=False)
    """What admission asks room for: the most it ever held, and one token more."""
    planned: int = field(default=0, init=False)
    """Tokens that the step under way feeds."""
    loaded: bool = field(default=False, init=False)
    """Whether the kept tokens have been copied in."""
    ticket: int = field(default=-1, init=False)
    """Order of arrival; set when submitted."""

    def __post_init__(self) -> None:
        if not 0 <= self.kept < self.end:
            raise ValueError(f"sequence {self.identity}: 0 <= kept < end does not hold")
        self.reached = self.kept + 1
