"""The Kolmogorov-Smirnov distance between measured delays and what was asked for.

Written out rather than taken from scipy, whose import costs the guest seconds; a unit
test holds it to scipy's figure.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from statistics import NormalDist

from testbed.contract.link import Distribution, Jitter
from testbed.shaping.distribution import SCALE, table_of

ALPHA = 1e-6
"""Chance that a faithful link is called wrong. A seed either passes for ever or never."""


def distance(sample: Sequence[float], delay_ns: int, jitter: Jitter) -> float:
    """Largest gap between the sample's distribution and the one that was asked for."""
    if not sample:
        return 1.0
    cumulative = reference(delay_ns, jitter)
    ordered = sorted(sample)
    count = len(ordered)
    return max(
        max((rank + 1) / count - cumulative(value), cumulative(value) - rank / count)
        for rank, value in enumerate(ordered)
    )


def limit(count: int) -> float:
    """The distance that chance exceeds with probability ALPHA (asymptotic, two-sided)."""
    return math.sqrt(-math.log(ALPHA / 2) / 2 / max(count, 1))


def reference(delay_ns: int, jitter: Jitter) -> Callable[[float], float]:
    """The wanted cumulative distribution of the delay in ns."""
    mean, spread = delay_ns, jitter.spread_ns
    if jitter.distribution is Distribution.UNIFORM:
        return lambda x: min(1.0, max(0.0, (x - mean + spread) / (2 * spread)))
    if jitter.distribution is Distribution.NORMAL:
        return NormalDist(mean, spread).cdf
    quantiles = sorted(table_of(jitter.distribution))
    count = len(quantiles)

    def cumulative(x: float) -> float:
        position = (x - mean) / spread * SCALE
        low, high = bisect_left(quantiles, position), bisect_right(quantiles, position)
        return (low + high) / (2 * count)

    return cumulative
