"""Jitter that keeps order: a delay that wanders over time instead of being drawn per packet.

Independent draws per packet and first-in-first-out contradict each other: at 10 Gbit/s
packets are microseconds apart, so either they overtake (netem without rate) or the delay
degenerates to a running maximum (netem with rate). Real queues do neither: their delay is
one process in time, and a packet meets its value. So is this one: ``BINS`` values, joined
by straight lines, repeated for ever::

    delay of a packet = line through values[k], values[k+1]   at k = time / bin

The values are a smooth seeded path (white noise through a raised-cosine window) whose
ranks are replaced by the quantiles of the wanted distribution, so over one period the
delay has exactly that distribution, whatever the traffic. No line falls faster than half
a nanosecond per nanosecond, so no packet overtakes another. The price: samples closer
than about 32 bins are alike, and the path repeats after BINS bins.
"""

from __future__ import annotations

import math
import random
from functools import lru_cache

from testbed.contract.link import Jitter
from testbed.errors import PlanError
from testbed.shaping.distribution import SCALE, table_of
from testbed.shaping.qdisc import U32_MAX, Pacer

BINS = 16_384
WINDOW = 32
"""Bins over which the path forgets."""
SMALLEST_SHIFT, LARGEST_SHIFT = 10, 34
"""Bin widths from 1 us to 17 s."""


@lru_cache
def wander(delay_ns: int, jitter: Jitter, seed: int) -> Pacer:
    """The delay over time. PlanError where the kernel's fields cannot hold it."""
    quantiles = _quantiles(jitter)
    path = _path(seed)
    ranked = sorted(range(BINS), key=path.__getitem__)
    delays = [0] * BINS
    for rank, position in enumerate(ranked):
        delays[position] = delay_ns + round(jitter.spread_ns * quantiles[rank])
    if max(delays) > U32_MAX:
        raise PlanError(
            "shape",
            "jitter",
            f"a delay of {max(delays)} ns exceeds 4.29 s",
            "lower delay or jitter",
        )
    steepest = max(delays[i] - delays[(i + 1) % BINS] for i in range(BINS))
    widest = max(2 * jitter.spread_ns, 2 * steepest)
    shift = min(max(SMALLEST_SHIFT, (widest - 1).bit_length()), LARGEST_SHIFT)
    return Pacer(shift=shift, delays_ns=tuple(delays))


def delay_at(pacer: Pacer, now_ns: int) -> int:
    """The delay of a packet that arrives at ``now_ns`` (CLOCK_MONOTONIC), as the program has it."""
    here, after = _around(pacer, now_ns)
    within = now_ns & ((1 << pacer.shift) - 1)
    return here + ((after - here) * within >> pacer.shift)


def _around(pacer: Pacer, now_ns: int) -> tuple[int, int]:
    count = len(pacer.delays_ns)
    index = (now_ns >> pacer.shift) % count
    return pacer.delays_ns[index], pacer.delays_ns[(index + 1) % count]


def _quantiles(jitter: Jitter) -> list[float]:
    """BINS standardised quantiles (of half-width 1 for uniform), ascending."""
    table = sorted(table_of(jitter.distribution))
    if not table:
        return [2 * (rank + 0.5) / BINS - 1 for rank in range(BINS)]
    return [table[rank * len(table) // BINS] / SCALE for rank in range(BINS)]


def _path(seed: int) -> list[float]:
    """A smooth closed path: circular moving average of seeded noise."""
    generator = random.Random(seed)
    noise = [generator.random() - 0.5 for _ in range(BINS)]
    weights = [1 - math.cos(2 * math.pi * (i + 0.5) / WINDOW) for i in range(WINDOW)]
    noise += noise[:WINDOW]
    return [
        sum(weight * value for weight, value in zip(weights, noise[i : i + WINDOW], strict=True))
        for i in range(BINS)
    ]
