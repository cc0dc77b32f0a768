"""Draws from one seeded stream, in the quantities that scenarios are written in. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TypeVar

from testbed.units import Duration, Rate, Share

T = TypeVar("T")
_MS, _US, _PPM = 1_000_000, 1_000, 10**9


class Dice:
    """One stream; the same seed gives the same draws."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def chance(self, share: float) -> bool:
        """True with this probability."""
        return self._random.random() < share

    def pick(self, among: Sequence[T]) -> T:
        """One of them, each as likely."""
        return among[self._random.randrange(len(among))]

    def some(self, among: Sequence[T], most: int) -> tuple[T, ...]:
        """One to ``most`` different ones, in their own order."""
        count = self._random.randint(1, min(most, len(among)))
        chosen = sorted(self._random.sample(range(len(among)), count))
        return tuple(among[index] for index in chosen)

    def two(self, among: Sequence[T]) -> tuple[T, T]:
        """Two different ones, in any order."""
        one, other = self._random.sample(range(len(among)), 2)
        return among[one], among[other]

    def whole(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return self._random.randint(low, high)

    def between(self, low: float, high: float) -> float:
        """Evenly over orders of magnitude: as often from 1 to 10 as from 10 to 100."""
        return math.exp(self._random.uniform(math.log(low), math.log(high)))

    def duration(self, low_ns: float, high_ns: float) -> Duration:
        """Over orders of magnitude; whole milliseconds, or microseconds, where it is that long."""
        drawn = int(self.between(low_ns, high_ns))
        step = _MS if drawn >= 10 * _MS else _US if drawn >= 10 * _US else 1
        return Duration(max(1, drawn // step * step))

    def moment(self, until_ns: int) -> Duration:
        """Evenly from 0 to ``until_ns``, in whole milliseconds."""
        return Duration(self.whole(0, until_ns // _MS) * _MS)

    def share(self, low: float, high: float) -> Share:
        """Over orders of magnitude, in whole ppm."""
        return Share(max(1, int(self.between(low, high) * 1e6)) * _PPM)

    def rate(self, low_bps: float, high_bps: float) -> Rate:
        """Over orders of magnitude, in whole bytes a second."""
        return Rate(max(1, int(self.between(low_bps, high_bps)) // 8) * 8)
