"""Waiting for prefill, alone: Poisson arrivals, several P, first come, first served.

Used to fit the speed of prefill to a published median of TTFT. Arrivals and hit rates
come from one seeded stream, so that two speeds meet the same requests.
"""

from __future__ import annotations

import heapq
import random
import statistics
from collections.abc import Callable

from testbed.hardware import anchors

ARRIVALS = 6_000
SEEDS = tuple(range(1, 22))
"""Runs of almost nine minutes at 11.5 requests/s, each starting with empty queues."""


def latencies_s(
    prefill_s: Callable[[int, int], float], requests_s: float, seed: int
) -> tuple[float, ...]:
    """From arrival to the end of prefill, sorted; each request takes the P that is free first."""
    draw = random.Random(seed)
    free_s = [0.0] * anchors.PREFILL_INSTANCES
    now_s = 0.0
    found: list[float] = []
    for _ in range(ARRIVALS):
        now_s += draw.expovariate(requests_s)
        hit = anchors.HIT_LOW + anchors.HIT_SPAN * draw.betavariate(*anchors.HIT_BETA)
        cached = int(anchors.INPUT_TOKENS * hit)
        start_s = max(now_s, free_s[0])
        end_s = start_s + prefill_s(anchors.INPUT_TOKENS - cached, cached)
        heapq.heapreplace(free_s, end_s)
        found.append(end_s - now_s)
    return tuple(sorted(found))


def percentile_s(prefill_s: Callable[[int, int], float], requests_s: float, share: float) -> float:
    """A percentile of the latencies in the median run."""
    runs = (latencies_s(prefill_s, requests_s, seed) for seed in SEEDS)
    return statistics.median(run[int(share * (len(run) - 1))] for run in runs)
