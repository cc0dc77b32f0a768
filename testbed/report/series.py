"""Time series and distributions for the charts, thinned to what a screen can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from testbed.checks.history import History
from testbed.checks.moment import LinkSample
from testbed.checks.pool_replay import PoolReplay, pool_steps

Floats = npt.NDArray[np.float64]

BINS = 480
"""Points per time series: about one for each two pixels of a wide chart."""
QUANTILES = 400


@dataclass(frozen=True, slots=True)
class PoolSeries:
    """Busy connections and waiting transfers, averaged over equal bins of time (s)."""

    time_s: Floats
    busy: Floats
    waiting: Floats


@dataclass(frozen=True, slots=True)
class LegSeries:
    """Utilisation (share of the rate) of one direction of a link, at the middle of equal bins."""

    name: str
    time_s: Floats
    utilization: Floats
    drops: int


def cdf(values: Sequence[float]) -> tuple[Floats, Floats]:
    """Return (values, shares) of the empirical distribution; the tail keeps every point."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    if n <= QUANTILES:
        picks = np.arange(n)
    else:
        body = np.linspace(0, n - 1, QUANTILES // 2).round().astype(int)
        # evenly in log distance from the maximum, so that P99 and P99.9 are drawn exactly
        tail = n - np.unique(np.geomspace(1, n, QUANTILES // 2).round().astype(int))
        picks = np.unique(np.concatenate((body, tail)))
    return ordered[picks], (picks + 1) / max(n, 1)


def pool_series(history: History, end_ns: int) -> PoolSeries:
    """Average occupancy of all pools from the barrier to ``end_ns`` or the last pool event."""
    times, busy, waiting = [0], [0], [0]
    pools: dict[tuple[str, str], PoolReplay] = {}
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    now_busy = now_waiting = 0
    for pair, step in pool_steps(history):
        pool = pools.setdefault(pair, PoolReplay())
        pool.take(step)
        before = counts.get(pair, (0, 0))
        counts[pair] = len(pool.holders), len(pool.queue)
        now_busy += counts[pair][0] - before[0]
        now_waiting += counts[pair][1] - before[1]
        times.append(step.t)
        busy.append(now_busy)
        waiting.append(now_waiting)
    edges = np.linspace(0, max(1, min(end_ns, times[-1])), BINS + 1)
    return PoolSeries(
        time_s=(edges[:-1] + edges[1:]) / 2e9,
        busy=_bin_means(times, busy, edges),
        waiting=_bin_means(times, waiting, edges),
    )


def _bin_means(times: Sequence[int], values: Sequence[int], edges: Floats) -> Floats:
    """Average a step function over bins: exact, by its integral at the edges."""
    t = np.asarray(times, dtype=np.float64)
    v = np.asarray(values, dtype=np.float64)
    area = np.concatenate(([0.0], np.cumsum(v[:-1] * np.diff(t))))
    last = np.searchsorted(t, edges, side="right") - 1
    at_edges = area[last] + v[last] * (edges - t[last])
    return np.diff(at_edges) / np.diff(edges)


def leg_series(
    samples: Sequence[LinkSample], link: str, direction: str, rate_bps: int
) -> LegSeries | None:
    """Return one direction's utilisation; None without samples or for an unlimited link.

    Idle intervals have no sample, so bytes are spread over their own interval first and
    then summed per bin; a gap between samples counts as zero.
    """
    own = [s for s in samples if s.link == link and s.direction == direction and s.interval_ns > 0]
    if not own or not rate_bps:
        return None
    end = own[-1].t
    bins = max(1, min(BINS, end // max(1, min(s.interval_ns for s in own))))
    edges = np.linspace(0, end, bins + 1)
    knots = np.array([t for s in own for t in (s.t - s.interval_ns, s.t)], dtype=np.float64)
    totals = np.cumsum([size for s in own for size in (0, s.size)], dtype=np.float64)
    sizes = np.diff(np.interp(edges, np.maximum.accumulate(knots), totals))
    return LegSeries(
        name=link,
        time_s=(edges[:-1] + edges[1:]) / 2e9,
        utilization=8e9 * sizes / np.diff(edges) / rate_bps,
        drops=sum(s.drops for s in own),
    )
