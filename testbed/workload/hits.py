"""Which share of a request's prompt is already cached: the prefix hit rate.

The paper's two studies (section 2.2): *wide and skewed*, a Beta distribution
stretched over 2 % to 99 % with mean 90 %, and *narrow and even*, uniform between 85 %
and 95 %. The Beta parameters are not published; (0.788, 0.081) fits the published
mean and the published 70 to 80 % of requests above 95 %.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testbed.errors import PlanError
from testbed.scenario.workload import HitRate
from testbed.workload.lengths import Lengths
from testbed.workload.traces import Trace

Shares = NDArray[np.float64]


def hit_shares(
    hit: HitRate, input_tokens: Lengths, trace: Trace | None, draw: np.random.Generator
) -> Shares:
    """The hit rate of each request, from 0 to 1, before rounding to blocks.

    A traced hit counts tokens of the prompt as it was; of a prompt that was cut short
    it covers at most all. Hits of kind ``prompts`` are 0 here: they follow from the prompts.
    """
    count = input_tokens.size
    match hit.kind:
        case "beta":
            low, high = hit.low.fraction, hit.high.fraction
            return low + (high - low) * draw.beta(hit.alpha, hit.beta, count)
        case "uniform":
            return draw.uniform(hit.low.fraction, hit.high.fraction, count)
        case "fixed":
            return np.full(count, hit.share.fraction)
        case "prompts":
            return np.zeros(count)
        case "trace":
            if trace is None:
                raise PlanError(
                    "draw hit rates", "kind trace", "no trace was loaded", "name it in arrivals"
                )
            if trace.hit_tokens is None:
                raise PlanError(
                    "draw hit rates", "kind trace", "the trace's format has no block ids",
                    "choose another kind of hit, or a Mooncake or Bailian trace",
                )  # fmt: skip
            return np.minimum(trace.hit_tokens[:count], input_tokens) / input_tokens
