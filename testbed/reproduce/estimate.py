"""A mean over seeds and how well it is known.

The interval is Student's t at 95 % over the seeds: seeds are independent, their means
near to normal, and few. Of one seed there is none: None, never zero width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.95
METHOD = "Student's t over the seeds, 95 %"


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean of ``n`` seeds; ``low`` and ``high`` end its interval, None with one seed."""

    n: int
    mean: float
    low: float | None = None
    high: float | None = None


def estimate(values: Sequence[float]) -> Estimate | None:
    """The mean with its interval; None of no value at all."""
    if not values:
        return None
    sample = np.array(values, dtype=np.float64)
    mean = float(sample.mean())
    if sample.size < 2:
        return Estimate(n=1, mean=mean)
    spread = float(sample.std(ddof=1)) / math.sqrt(sample.size)
    half = float(stats.t.ppf((1 + LEVEL) / 2, sample.size - 1)) * spread
    return Estimate(n=int(sample.size), mean=mean, low=mean - half, high=mean + half)
