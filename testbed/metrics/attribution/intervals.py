"""Sets of time as sorted disjoint half-open intervals of nanoseconds. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

Interval: TypeAlias = tuple[int, int]
Intervals: TypeAlias = tuple[Interval, ...]


def united(parts: Iterable[Interval]) -> Intervals:
    """Their union; empty intervals vanish."""
    found: list[Interval] = []
    for begin, end in sorted(part for part in parts if part[0] < part[1]):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return tuple(found)


def common(one: Intervals, other: Intervals) -> Intervals:
    """What lies in both."""
    return tuple((max(a, c), min(b, d)) for a, b in one for c, d in other if a < d and c < b)


def without(one: Intervals, other: Intervals) -> Intervals:
    """What lies in ``one`` and not in ``other``."""
    left = list(one)
    for c, d in other:
        cut: list[Interval] = []
        for a, b in left:
            cut.extend(part for part in ((a, min(b, c)), (max(a, d), b)) if part[0] < part[1])
        left = cut
    return tuple(left)


def first(one: Intervals, length: int) -> Intervals:
    """The first ``length`` nanoseconds of it."""
    found: list[Interval] = []
    for begin, end in one:
        if length <= 0:
            break
        found.append((begin, min(end, begin + length)))
        length -= end - begin
    return tuple(found)


def measure(one: Intervals) -> int:
    """Nanoseconds in all."""
    return sum(end - begin for begin, end in one)
