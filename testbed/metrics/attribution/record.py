"""The ``stalls``, ``slow_first_tokens``, ``slow_transfers`` and ``causes`` of ``metrics.json``.

Shares are of the whole delay. Seconds of ``waits`` add up to its length; those of ``shares`` and
``unexplained_s`` as well.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from testbed.contract.record import Record


class Link(Record):
    """One link of a chain: an interval of the record that overlaps the delay.

    ``kind`` is ``wait``, ``transfer``, ``connection``, ``leg``, ``loss`` or ``fault``.
    """

    kind: str
    subject: str
    begin_s: float
    end_s: float
    share: float
    """Of the delay that lies within this interval, 0 to 1."""
    evidence: str = ""
    """What the record says about it, in words."""


class Share(Record):
    """A part of the delay that one thing explains."""

    cause: str
    subject: str = ""
    """Of what: a link and direction, a pool, a node."""
    fault: str = ""
    seconds: float
    share: float


class Delay(Record):
    """One delay, and why."""

    what: Literal["stall", "first-token", "transfer"]
    req: int
    position: int | None = None
    """Of the token that came late; None for a transfer."""
    source: str
    """Who was waited for: who sent the late token, or ``p1->md1``."""
    begin_s: float
    length_s: float
    root: str
    """What explains the most of it: a name of ``Cause``."""
    fault: str = ""
    """Which fault, where the root is one."""
    subject: str = ""
    """On what: a link and direction, a pool, a node."""
    waits: dict[str, float]
    """What was waited for, in seconds."""
    shares: tuple[Share, ...] = ()
    """The largest first, at most 12."""
    unexplained_s: float
    chain: tuple[Link, ...] = ()
    """From the client's delay down to the root."""


class Roots(Record):
    """All delays of one sort, by their roots."""

    count: int = 0
    examined: int = 0
    """The longest ones, at most 1,000."""
    total_s: float = 0.0
    """Of those examined, as is the next."""
    unexplained_s: float = 0.0
    by_cause: dict[str, int] = Field(default_factory=dict)
    by_fault: dict[str, int] = Field(default_factory=dict)
    """Of those whose root is a fault."""
    by_subject: dict[str, int] = Field(default_factory=dict)


class Causes(Record):
    """Counts over all delays; the lists hold only the worst."""

    stalls: Roots = Roots()
    first_tokens: Roots = Roots()
    transfers: Roots = Roots()
