"""How the faults of one kind are drawn: on what, how strong, and what cannot meet it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from testbed.contract.fault import Span
from testbed.scenario.ailments import OnPairs
from testbed.scenario.document import Plain
from testbed.scenario.timed import OnLinks, Timed
from testbed.soak.dice import Dice
from testbed.soak.ground import Ground
from testbed.soak.schedule import Drawn

Keys: TypeAlias = dict[str, Plain]
MOST_NAMES = 3


@dataclass(frozen=True, slots=True)
class Claim:
    """A part of a link or node that a fault uses while it is in force.

    Two claims of one part cannot meet where either is ``alone``.
    """

    subject: str
    part: str
    alone: bool = True

    def bars(self, other: Claim) -> bool:
        """Whether both cannot be held at one moment."""
        same = (self.subject, self.part) == (other.subject, other.part)
        return same and (self.alone or other.alone)


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind.

    Attributes:
        model: as scenarios write it.
        names: what it may name on a ground; empty where it cannot be there at all.
        keys: its own keys, for the subjects that were drawn.
        parts: parts of a subject that it claims, each with whether it does so alone.
        endless: whether it may last to the end of the run.
        most: how many subjects it may name at once.
        passing: whether it may end before the run does, and come back.
        more_is_milder: keys of which a larger value does less.
    """

    model: type[Drawn]
    names: Callable[[Ground], tuple[str, ...]]
    keys: Callable[[Dice, Ground, tuple[str, ...]], Keys]
    parts: Callable[[Drawn], tuple[tuple[str, bool], ...]]
    endless: Callable[[Ground, tuple[str, ...]], bool] = lambda ground, names: True
    most: int = MOST_NAMES
    passing: bool = True
    more_is_milder: frozenset[str] = frozenset()


def no_keys(dice: Dice, ground: Ground, names: tuple[str, ...]) -> Keys:
    """For kinds that have no parameters."""
    return {}


def nothing(fault: Drawn) -> tuple[tuple[str, bool], ...]:
    """For kinds that may meet anything."""
    return ()


def alone(part: str) -> Callable[[Drawn], tuple[tuple[str, bool], ...]]:
    """For kinds of which one at a time may be there."""
    return lambda fault: ((part, True),)


def subjects(fault: Drawn, ground: Ground) -> tuple[str, ...]:
    """What it acts on: each way of a link (``wan1 >``), a node, or a pair (``p1 md1``)."""
    if isinstance(fault, OnPairs):
        return (" ".join(fault.pair),)
    if not isinstance(fault, OnLinks):
        return (fault.node,) if isinstance(fault.node, str) else fault.node
    named = (fault.link,) if isinstance(fault.link, str) else fault.link
    links = dict.fromkeys(link for name in named for link in ground.members(name))
    ways = {"both": "<>", "forward": ">", "backward": "<"}[fault.direction]
    return tuple(f"{link} {way}" for link in links for way in ways)


def spans(fault: Timed) -> tuple[Span, ...]:
    """Every time that it may be in force, whatever its chances."""
    gap = fault.every.ns if fault.every else 0
    first_ns = 0 if fault.at is None else fault.at.ns
    begins = [first_ns + turn * gap for turn in range(fault.times or 1)]
    lasts = fault.lasts_ns
    return tuple(
        Span(begin_ns=begin, end_ns=None if lasts is None else begin + lasts) for begin in begins
    )


def claims(fault: Drawn, rule: Rule, ground: Ground) -> tuple[Claim, ...]:
    """Everything that it uses."""
    return tuple(
        Claim(subject, part, by_itself)
        for subject in subjects(fault, ground)
        for part, by_itself in rule.parts(fault)
    )


def meet(one: Iterable[Span], other: Iterable[Span]) -> bool:
    """Whether two faults are ever in force at one moment."""
    later = tuple(other)
    return any(mine.overlaps(theirs) for mine in one for theirs in later)
