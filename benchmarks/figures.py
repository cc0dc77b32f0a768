"""Figures with n and spread, and ratios that name their peer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Spread:
    """Repeated measurements of one quantity."""

    what: str
    unit: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle value; what ratios are built from."""
        return median(self.values)

    def __str__(self) -> str:
        low, high = min(self.values), max(self.values)
        return (
            f"{self.what}: n={len(self.values)}, min {low:.3g}, median {self.median:.3g}, "
            f"max {high:.3g} {self.unit}"
        )


def spread(what: str, unit: str, values: Sequence[float]) -> Spread:
    """A ``Spread`` of at least one value.

    Raises:
        ValueError: nothing was measured.
    """
    if not values:
        raise ValueError(f"nothing was measured for {what}")
    return Spread(what, unit, tuple(values))


def against(one: Spread, peer: Spread) -> str:
    """One line: the ratio of two medians."""
    return f"ratio: {one.what} / {peer.what}: {one.median / peer.median:.3g}"


def against_bar(one: Spread, bar: float, lower_is_better: bool = False) -> str:
    """One line: the median and the bar it was set; below the bar counts where lower is better."""
    met = one.median <= bar if lower_is_better else one.median >= bar
    sign = "at most" if lower_is_better else "at least"
    return (
        f"bar: {one.what} {sign} {bar:g} {one.unit}: median is {one.median / bar:.3g} x the bar, "
        f"{'met' if met else 'NOT met'}"
    )
