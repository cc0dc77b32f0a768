"""Delay distribution tables: quantiles of a standardised variable, as netem wants them.

netem draws an index uniformly and adds ``table[i] / 8192 * jitter`` to the latency
(NETEM_DIST_SCALE, net/sched/sch_netem.c: tabledist), so a table of evenly spaced
quantiles reproduces the distribution. Entries are 16-bit, so nothing lies more than
four sigma from the mean; the tables are centred after that cut, so that jitter never
shifts the mean delay. iproute2's files in /usr/lib/tc differ: they are not centred
(its Pareto table is scaled by 4/3, not by 1/sd), so they are not used.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from statistics import NormalDist, fmean, pstdev

from testbed.contract.link import Distribution

SCALE = 8192
"""NETEM_DIST_SCALE: table units per sigma."""
SIZE = 4096
_LIMIT = 32_767
_PARETO_SHAPE = 3.0
_PARETO_WEIGHT, _NORMAL_WEIGHT = 0.75, 0.25
"""Mixture of netem's ``paretonormal`` (iproute2, netem/paretonormal.c)."""


@lru_cache
def table_of(distribution: Distribution) -> tuple[int, ...]:
    """The table; empty for uniform, which netem computes without one."""
    match distribution:
        case Distribution.UNIFORM:
            return ()
        case Distribution.NORMAL:
            return _table(_normal(SIZE))
        case Distribution.PARETO:
            return _table(_pareto(SIZE))
        case Distribution.PARETO_NORMAL:
            return _table(_pareto_normal())


def _positions(count: int) -> list[float]:
    return [(i + 0.5) / count for i in range(count)]


def _normal(count: int) -> list[float]:
    normal = NormalDist()
    return [normal.inv_cdf(p) for p in _positions(count)]


def _pareto(count: int) -> list[float]:
    """Quantiles of a Pareto with tail index 3, where mean and variance exist."""
    return [(1 - p) ** (-1 / _PARETO_SHAPE) for p in _positions(count)]


def _pareto_normal() -> list[float]:
    """Quantiles of the sum of an independent Pareto and a normal, by a product grid."""
    side = 256
    grid = product(_standard(_pareto(side)), _standard(_normal(side)))
    sums = sorted(_PARETO_WEIGHT * p + _NORMAL_WEIGHT * n for p, n in grid)
    step = len(sums) // SIZE
    return sums[step // 2 :: step]


def _standard(values: list[float]) -> list[float]:
    mean, deviation = fmean(values), pstdev(values)
    return [(value - mean) / deviation for value in values]


def _table(values: list[float]) -> tuple[int, ...]:
    """Scale, cut at four sigma, centre; repeated because each step disturbs the other."""
    bound = _LIMIT / SCALE
    for _ in range(8):
        values = [max(-bound, min(bound, value)) for value in _standard(values)]
    shift = fmean(values)
    return tuple(max(-_LIMIT, min(_LIMIT, round((v - shift) * SCALE))) for v in values)
