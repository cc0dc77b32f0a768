"""A link under any number of faults: no order matters, and taking one away leaves the others."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from testbed.contract.fault import (
    AddedDelay,
    AddedJitter,
    AddedLoss,
    Corruption,
    Down,
    Duplication,
    Effect,
    Reordering,
    SlowRate,
)
from testbed.contract.link import (
    Distribution,
    FourState,
    GilbertElliott,
    Jitter,
    LinkSpec,
    RandomLoss,
)
from testbed.errors import PlanError
from testbed.shaping.compile import compile_link
from testbed.shaping.faulted import faulted

pytestmark = pytest.mark.unit
MS = 10**6
SPEC = LinkSpec(rate_bps=10**10, delay_ns=10 * MS, buffer_bytes=25 * 10**6, superframe_bytes=9000)
BURSTS = GilbertElliott(p=0.01, r=0.5, bad_loss=0.8, good_loss=0.001)
FOUR = FourState(p13=0.1, p31=0.5)

shares = st.floats(0.001, 0.5)
jitters = st.builds(
    Jitter, spread_ns=st.integers(1, MS), distribution=st.sampled_from(Distribution),
    reorder=st.booleans(),
)  # fmt: skip
effects: st.SearchStrategy[Effect] = st.one_of(
    st.builds(SlowRate, rate_bps=st.integers(2 * 10**5, 10**8).map(lambda n: 8 * n)),
    st.builds(AddedDelay, delay_ns=st.integers(1, 10**9)),
    st.builds(AddedJitter, jitter=jitters),
    st.builds(AddedLoss, loss=st.builds(RandomLoss, share=shares)),
    st.builds(Duplication, share=shares),
    st.builds(Corruption, share=shares),
    st.builds(Reordering, share=shares),
)


@given(st.lists(effects, max_size=6), st.randoms())
def test_the_order_of_faults_does_not_matter(some: list[Effect], draw: object) -> None:
    other = list(some)
    draw.shuffle(other)  # type: ignore[attr-defined]
    assert faulted(SPEC, some, "wan1") == faulted(SPEC, other, "wan1")


@given(st.lists(effects, max_size=5))
def test_no_fault_makes_a_link_better(some: list[Effect]) -> None:
    now = faulted(SPEC, some, "wan1")
    assert now.rate_bps <= SPEC.rate_bps
    assert now.delay_ns >= SPEC.delay_ns
    assert now.duplicate >= SPEC.duplicate
    assert now.corrupt >= SPEC.corrupt
    assert now.buffer_bytes == SPEC.buffer_bytes
    assert (now.mtu, now.superframe_bytes, now.seed) == (SPEC.mtu, SPEC.superframe_bytes, SPEC.seed)


@settings(deadline=None)  # the first table of a distribution takes its time
@given(st.lists(effects, max_size=5))
def test_what_they_make_can_be_built_where_the_delay_holds_the_jitter(some: list[Effect]) -> None:
    now = faulted(SPEC.model_copy(update={"delay_ns": 50 * MS}), some, "wan1")
    assume(now.jitter is None or now.jitter.spread_ns * 4 < now.delay_ns)
    assert compile_link(now).delay


def test_nothing_is_left_of_a_fault_that_is_taken_away() -> None:
    assert faulted(SPEC, (), "wan1") == SPEC


def test_independent_losses_multiply_what_survives() -> None:
    some = [AddedLoss(loss=RandomLoss(share=share)) for share in (0.5, 0.5, 0.2)]
    loss = faulted(SPEC, some, "wan1").loss
    assert isinstance(loss, RandomLoss)
    assert math.isclose(loss.share, 1 - 0.5 * 0.5 * 0.8)


def test_random_loss_joins_both_states_of_a_burst() -> None:
    some = (AddedLoss(loss=BURSTS), AddedLoss(loss=RandomLoss(share=0.1)))
    loss = faulted(SPEC, some, "wan1").loss
    assert isinstance(loss, GilbertElliott)
    assert (loss.p, loss.r) == (BURSTS.p, BURSTS.r)
    assert math.isclose(loss.bad_loss, 0.82)
    assert math.isclose(loss.good_loss, 1 - 0.999 * 0.9)


@pytest.mark.parametrize("other", [BURSTS, FOUR, RandomLoss(share=0.1)])
def test_what_netem_cannot_do_at_once_is_refused(other: object) -> None:
    some = [AddedLoss(loss=FOUR), AddedLoss(loss=other)]
    for order in (some, some[::-1]):
        with pytest.raises(PlanError, match="at once"):
            faulted(SPEC, order, "wan1")


def test_jitters_of_one_shape_keep_it_and_a_mixture_is_normal() -> None:
    uniform = Jitter(spread_ns=3 * MS, distribution=Distribution.UNIFORM)
    some = [AddedJitter(jitter=uniform), AddedJitter(jitter=uniform.model_copy(
        update={"spread_ns": 4 * MS}
    ))]  # fmt: skip
    mixed = faulted(SPEC, some, "wan1").jitter
    assert mixed == uniform.model_copy(update={"spread_ns": 5 * MS})
    pareto = AddedJitter(jitter=Jitter(spread_ns=MS, distribution=Distribution.PARETO))
    three = faulted(SPEC, [*some, pareto], "wan1").jitter
    assert three is not None
    assert three.distribution is Distribution.NORMAL


def test_one_direction_can_be_down_although_it_carries_superframes() -> None:
    large = SPEC.model_copy(update={"superframe_bytes": 65_536})
    now = faulted(large, [Down()], "wan1")
    assert now.loss == RandomLoss(share=1.0)
    assert compile_link(now).delay
    with pytest.raises(PlanError, match="acts per packet"):
        compile_link(faulted(large, [AddedLoss(loss=RandomLoss(share=0.5))], "wan1"))
