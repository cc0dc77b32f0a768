"""When requests arrive: nanoseconds since the barrier, ascending, in [0, end).

::

    poisson   x  x   xx x    x   x x     independent exponential gaps
    bursty    xxxxxx            xxxx     Poisson in bursts, nothing in between
    even      x   x   x   x   x   x      one gap for all

A closed loop has no arrival times: its users send the next request when the last
one is answered.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from testbed.errors import PlanError

REQUESTS_MAX = 1_000_000
"""More requests than this do not fit into one run's memory and files."""

SECOND_NS = 1_000_000_000
Times = NDArray[np.int64]


def poisson(rate_hz: float, end_ns: int, draw: np.random.Generator) -> Times:
    """Poisson arrivals at ``rate_hz``.

    Raises:
        PlanError: the rate is zero, or makes more than ``REQUESTS_MAX`` requests.
    """
    check_count(rate_hz, end_ns)
    batch = max(16, math.ceil(rate_hz * end_ns / SECOND_NS))
    at_s = np.cumsum(draw.exponential(1.0 / rate_hz, batch))
    while at_s[-1] * SECOND_NS < end_ns:
        more_s = np.cumsum(draw.exponential(1.0 / rate_hz, batch))
        at_s = np.concatenate((at_s, at_s[-1] + more_s))
    return _before(at_s, end_ns)


def bursty(
    rate_hz: float, burst_s: float, silence_s: float, end_ns: int, draw: np.random.Generator
) -> Times:
    """Interrupted Poisson arrivals with mean rate ``rate_hz`` over all time.

    Bursts last ``burst_s`` seconds on average and silences ``silence_s``, both
    exponential; the first period is drawn from the stationary state. In a burst the
    rate is rate * (burst + silence) / burst, which is the stated burstiness.

    Raises:
        PlanError: the rate is zero, or makes more than ``REQUESTS_MAX`` requests.
    """
    check_count(rate_hz, end_ns)
    if silence_s == 0.0:
        return poisson(rate_hz, end_ns, draw)
    peak_hz = rate_hz * (burst_s + silence_s) / burst_s
    check_count(min(1 / burst_s, 1 / silence_s), end_ns)
    end_s = end_ns / SECOND_NS
    at_s, in_burst = 0.0, bool(draw.random() < burst_s / (burst_s + silence_s))
    pieces: list[NDArray[np.float64]] = []
    while at_s < end_s:
        length_s = float(draw.exponential(burst_s if in_burst else silence_s))
        if in_burst:
            count = int(draw.poisson(peak_hz * length_s))
            pieces.append(at_s + np.sort(draw.random(count)) * length_s)
        at_s, in_burst = at_s + length_s, not in_burst
    return _before(np.concatenate(pieces) if pieces else np.empty(0), end_ns)


def even(every_ns: int, first_ns: int, count: int | None, end_ns: int) -> Times:
    """One request every ``every_ns`` from ``first_ns`` on; ``count`` of them, or up to the end.

    Raises:
        PlanError: ``count`` requests do not fit before the end, or there are too many.
    """
    check_count(SECOND_NS / every_ns, end_ns)
    fitting = max(0, math.ceil((end_ns - first_ns) / every_ns))
    if count is not None and count > fitting:
        raise PlanError(
            "draw arrivals",
            f"{count} requests, one every {every_ns / 1e9:g} s from {first_ns / 1e9:g} s",
            f"only {fitting} arrive before the measuring window ends at {end_ns / 1e9:g} s",
            "lengthen the window, or lower count or every",
        )
    return first_ns + every_ns * np.arange(fitting if count is None else count, dtype=np.int64)


def check_count(rate_hz: float, end_ns: int) -> None:
    """Refuse a rate of zero and one that makes more requests than a run can hold."""
    if not (math.isfinite(rate_hz) and rate_hz > 0):
        raise PlanError("draw arrivals", f"{rate_hz:g} /s", "the rate is not above 0", "try 80 /s")
    expected = rate_hz * end_ns / SECOND_NS
    if expected > REQUESTS_MAX:
        raise PlanError(
            "draw arrivals",
            f"{rate_hz:g} /s over {end_ns / SECOND_NS:g} s",
            f"makes about {expected:,.0f} arrivals or periods, more than {REQUESTS_MAX:,}",
            "lower the rate or shorten the window",
        )


def _before(at_s: NDArray[np.float64], end_ns: int) -> Times:
    times: Times = np.floor(at_s * SECOND_NS).astype(np.int64)
    return times[times < end_ns]
