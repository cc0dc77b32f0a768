"""A part of a wait that one thing explains, and a cover that gives each moment to one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from testbed.metrics.attribution.cause import Cause
from testbed.metrics.attribution.intervals import Intervals, common, without
from testbed.metrics.attribution.past import Force, Sent
from testbed.metrics.attribution.ways import Way


@dataclass(frozen=True, slots=True)
class Why:
    """What explains something, and the way to it: transfer, leg, fault, where there are any."""

    cause: Cause
    subject: str = ""
    sent: Sent | None = None
    way: Way | None = None
    force: Force | None = None
    note: str = ""

    @property
    def key(self) -> tuple[Cause, str, str]:
        """What parts of one delay are put together by."""
        return self.cause, self.subject, "" if self.force is None else self.force.fault.name


@dataclass(frozen=True, slots=True)
class Piece:
    """From ``begin`` to ``end``, nanoseconds since the barrier."""

    begin: int
    end: int
    why: Why


class Cover:
    """First come, first served: what is taken is explained, what is ``left`` is not yet."""

    def __init__(self, span: Intervals) -> None:
        self.left = span
        self.pieces: list[Piece] = []

    def take(self, spans: Intervals, why: Why) -> None:
        """Explain what of ``spans`` is left."""
        got = common(self.left, spans) if spans else ()
        if got:
            self.left = without(self.left, got)
            self.pieces.extend(Piece(begin, end, why) for begin, end in got)

    def take_pieces(self, pieces: list[Piece], subject: str = "") -> None:
        """Explain by what explained something else at the same time."""
        for piece in pieces:
            why = replace(piece.why, subject=subject or piece.why.subject)
            self.take(((piece.begin, piece.end),), why)

    def rest(self, why: Why) -> None:
        """Explain all that is left."""
        self.take(self.left, why)
