"""What fits a machine: the arithmetic behind the refusal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.demand import Costs, Demand
from testbed.contract.scale import Scale
from testbed.plan.headroom import MOST, headroom

pytestmark = pytest.mark.unit

rates = st.floats(0, 1e6)
costs = st.builds(Costs, st.floats(1e-7, 1e-2), st.floats(1e-7, 1e-2))
demands = st.builds(
    Demand, superframes_per_s=rates, frames_per_s=rates, frame_bytes=st.just(9014),
    computing=st.floats(0, 50), shortest_ns=st.just(10**7),
)  # fmt: skip
scales = st.builds(Scale, size=st.floats(0.001, 1), slow=st.floats(1, 1000))


def at(demand: Demand, size: float, slow: float) -> Demand:
    """The demand when sizes and slow motion change by these factors."""
    return demand.model_copy(
        update={
            "superframes_per_s": demand.superframes_per_s * size / slow,
            "frames_per_s": demand.frames_per_s * size / slow,
            "computing": demand.computing / slow,
        }
    )


@given(demand=demands, cost=costs, scale=scales)
def test_the_slow_motion_that_is_named_fits_and_less_does_not(
    demand: Demand, cost: Costs, scale: Scale
) -> None:
    found = headroom(demand, cost, scale)
    assert found.fits == (found.needed <= MOST)
    factor = found.slow / scale.slow
    named = headroom(at(demand, 1, factor), cost, Scale(size=scale.size, slow=max(1, found.slow)))
    assert named.needed <= MOST * (1 + 1e-9) or factor < 1
    if found.slow > 1:
        quicker = headroom(at(demand, 1, factor * 0.9), cost, scale)
        assert quicker.needed > MOST


@given(demand=demands, cost=costs, scale=scales)
def test_the_size_that_is_named_fits_and_none_where_computing_alone_is_too_much(
    demand: Demand, cost: Costs, scale: Scale
) -> None:
    found = headroom(demand, cost, scale)
    if found.size is None:
        assert demand.computing >= MOST
        return
    smaller = headroom(at(demand, found.size / scale.size, 1), cost, scale)
    assert smaller.needed <= MOST * (1 + 1e-9)
    assert 0 < found.size <= 1


def test_a_plan_that_moves_nothing_fits_at_full_size() -> None:
    idle = Demand(
        superframes_per_s=0, frames_per_s=0, frame_bytes=1514, computing=0, shortest_ns=10**7
    )
    found = headroom(idle, Costs(1e-4, 1e-4), Scale(size=0.5, slow=2))
    assert found.fits
    assert found.size == 1
    assert found.slow == 1
