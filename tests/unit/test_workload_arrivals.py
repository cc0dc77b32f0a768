"""Arrivals come at the stated rate and burstiness, in order, inside the window."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import PlanError
from testbed.workload.arrivals import bursty, even, poisson
from testbed.workload.stream import stream

SECOND = 1_000_000_000


def dispersion(times: np.ndarray[tuple[int], np.dtype[np.int64]], end_ns: int) -> float:
    """Variance over mean of the number of arrivals a second: 1 for Poisson."""
    counts = np.bincount(times // SECOND, minlength=end_ns // SECOND)
    return float(counts.var() / counts.mean())


@given(st.integers(0, 2**63 - 1), st.floats(0.5, 200), st.integers(1, 60))
def test_poisson_arrivals_ascend_within_the_window(seed: int, rate: float, end_s: int) -> None:
    times = poisson(rate, end_s * SECOND, stream(seed, "arrivals"))
    assert (np.diff(times) >= 0).all()
    assert ((times >= 0) & (times < end_s * SECOND)).all()


def test_poisson_arrivals_have_the_rate_and_no_bursts() -> None:
    times = poisson(80, 2_000 * SECOND, stream(1, "arrivals"))
    assert times.size == pytest.approx(160_000, rel=0.01)
    assert dispersion(times, 2_000 * SECOND) == pytest.approx(1.0, rel=0.1)


def test_bursty_arrivals_have_the_mean_rate_in_bursts() -> None:
    times = bursty(80, 1.0, 3.0, 8_000 * SECOND, stream(1, "arrivals"))
    assert (np.diff(times) >= 0).all()
    assert times.size == pytest.approx(640_000, rel=0.05)
    assert dispersion(times, 8_000 * SECOND) > 20
    busy = np.bincount(times // (SECOND // 10), minlength=80_000) > 0
    assert busy.mean() == pytest.approx(0.25, abs=0.05)


def test_bursts_without_silence_are_poisson() -> None:
    end_ns = 100 * SECOND
    plain = poisson(80, end_ns, stream(3, "arrivals"))
    assert np.array_equal(bursty(80, 1.0, 0.0, end_ns, stream(3, "arrivals")), plain)


def test_even_arrivals_are_evenly_spaced() -> None:
    assert even(SECOND, SECOND // 2, None, 3 * SECOND).tolist() == [
        500_000_000,
        1_500_000_000,
        2_500_000_000,
    ]
    assert even(SECOND, 0, 2, 3 * SECOND).tolist() == [0, SECOND]


def test_even_arrivals_that_do_not_fit_are_refused() -> None:
    with pytest.raises(PlanError, match="only 3 arrive"):
        even(SECOND, 0, 4, 3 * SECOND)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_an_impossible_rate_is_refused(rate: float) -> None:
    with pytest.raises(PlanError, match="not above 0"):
        poisson(rate, SECOND, stream(1, "arrivals"))


def test_a_flood_is_refused_before_it_is_drawn() -> None:
    with pytest.raises(PlanError, match="more than 1,000,000"):
        poisson(1e6, 100 * SECOND, stream(1, "arrivals"))


def test_each_purpose_has_its_own_stream() -> None:
    first, again, other, reseeded = (
        stream(seed, purpose).random(4).tolist()
        for seed, purpose in ((1, "hit"), (1, "hit"), (1, "input"), (2, "hit"))
    )
    assert first == again
    assert first != other
    assert first != reseeded
