"""Percentiles and means of samples, the same everywhere in the testbed.

The q-th percentile of n sorted values interpolates linearly between the two values
around rank q/100 * (n - 1) (numpy's default, Hyndman and Fan's type 7). Of no value
there is no percentile: None, never 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]
NS = 1e9


def percentile(values: Samples, q: float) -> float | None:
    """The ``q``-th percentile, ``q`` from 0 to 100."""
    return float(np.percentile(values, q)) if values.size else None


def mean(values: Samples) -> float | None:
    """The arithmetic mean."""
    return float(values.mean()) if values.size else None
