"""The compiler: what it makes of a link, and what it refuses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.link import (
    Distribution,
    FourState,
    GilbertElliott,
    Jitter,
    LinkSpec,
    RandomLoss,
    Slot,
)
from testbed.errors import PlanError
from testbed.shaping.compile import StagePair, compile_link, policer_rate
from testbed.shaping.distribution import table_of
from testbed.shaping.qdisc import Fq, GeModel, Netem, Pacer, Police
from testbed.shaping.ratespec import Reciprocal, exact_ns

WAN = LinkSpec(
    rate_bps=10_000_000_000,
    delay_ns=10_000_000,
    buffer_bytes=25_000_000,
    superframe_bytes=9000,
    seed=7,
)


def netem(stage: tuple[object, ...]) -> Netem:
    return next(spec for spec in stage if isinstance(spec, Netem))


def with_(**changes: object) -> LinkSpec:
    return LinkSpec.model_validate({**WAN.model_dump(), **changes})


def test_rate_and_delay_sit_on_different_stages() -> None:
    stages = compile_link(WAN)
    assert netem(stages.rate).rate == 1_250_000_000
    assert netem(stages.rate).latency_ns == 0
    assert netem(stages.delay).rate == 0
    assert netem(stages.delay).latency_ns == 10_000_000
    assert netem(stages.delay).seed == 7


def test_the_buffer_is_bounded_in_bytes_before_the_rate() -> None:
    police, _ = compile_link(WAN).rate
    assert isinstance(police, Police)
    assert police.burst_ns * 1.25 == pytest.approx(25_000_000, abs=80)


def test_limits_hold_what_is_in_flight_in_the_smallest_frames() -> None:
    stages = compile_link(WAN)
    assert netem(stages.delay).limit >= 12_500_000 / 42
    assert netem(stages.rate).limit >= 25_000_000 / 42


def test_a_link_without_a_rate_has_no_rate_stage() -> None:
    assert compile_link(with_(rate_bps=0)).rate == ()


def test_loss_models_are_carried_over() -> None:
    loss = GilbertElliott(p=0.01, r=0.3, bad_loss=0.8, good_loss=0.001)
    assert netem(compile_link(with_(loss=loss)).delay).loss_model == GeModel(
        p=0x028F5C29, r=0x4CCCCCCC, h=0x33333333, k1=0x00418937
    )


def test_jitter_that_reorders_is_drawn_by_netem() -> None:
    stages = compile_link(with_(jitter=Jitter(spread_ns=1_000_000, reorder=True)))
    assert netem(stages.delay).jitter_ns == 1_000_000
    assert netem(stages.delay).table == table_of(Distribution.NORMAL)


def test_jitter_that_keeps_order_sets_departure_times() -> None:
    pacer, delay, room = compile_link(with_(jitter=Jitter(spread_ns=1_000_000))).delay
    assert isinstance(pacer, Pacer)
    assert isinstance(room, Fq)
    assert isinstance(delay, Netem)
    assert delay.jitter_ns == 0
    assert delay.latency_ns == min(pacer.delays_ns)


SUPER = {"superframe_bytes": 65_536}
REFUSED: dict[str, dict[str, object]] = {
    "exceeds the delay": {"jitter": Jitter(spread_ns=10_000_001)},
    "below the mean": {"jitter": Jitter(spread_ns=9_000_000)},
    "loss acts per packet": {"loss": RandomLoss(share=0.1), **SUPER},
    "duplication acts per packet": {"duplicate": 0.1, **SUPER},
    "corruption acts per packet": {"corrupt": 0.1, **SUPER},
    "reordering jitter acts": {"jitter": Jitter(spread_ns=1_000, reorder=True), **SUPER},
    "slotting acts per packet": {"slot": Slot(min_ns=1, max_ns=2), **SUPER},
    "min exceeds max": {"slot": Slot(min_ns=3, max_ns=2)},
    "both decide": {"slot": Slot(min_ns=1, max_ns=2), "jitter": Jitter(spread_ns=1_000)},
    "never admits": {"buffer_bytes": 9_000},
    "p13 \\+ p14": {"loss": FourState(p13=0.6, p31=0.1, p14=0.6)},
    "p31 \\+ p32": {"loss": FourState(p13=0.6, p31=0.6, p32=0.6)},
    "no loss": {"ecn": True},
    "resolution": {"loss": RandomLoss(share=1e-11)},
    "over a minute": {"delay_ns": 61_000_000_000, "rate_bps": 0},
    "does not fit the field": {"slot": Slot(min_ns=1, max_ns=2, packets=2**31)},
    "whole bytes": {"rate_bps": 10_000_000_001},
    "ticks": {"rate_bps": 8_000, "buffer_bytes": 1_000_000},
    "in flight": {"rate_bps": 400_000_000_000, "delay_ns": 2_000_000_000},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_is_refused_with_its_reason(reason: str) -> None:
    with pytest.raises(PlanError, match=reason) as caught:
        compile_link(with_(**REFUSED[reason]), "wan1 forward")
    assert "wan1 forward" in str(caught.value)
    assert caught.value.remedy


@given(
    st.sampled_from([1, 2, 5, 10, 25, 40, 100, 200, 400]),
    st.integers(1_000, 200_000_000),
    st.integers(70_000, 100_000_000),
)
@settings(max_examples=40, deadline=None)
def test_every_plain_link_compiles(gbit: int, delay_ns: int, buffer_bytes: int) -> None:
    spec = LinkSpec(rate_bps=gbit * 10**9, delay_ns=delay_ns, buffer_bytes=buffer_bytes)
    assert isinstance(compile_link(spec), StagePair)


@pytest.mark.parametrize("gbit", [1, 2.5, 7, 10, 16.2, 25, 100, 400])
def test_the_policer_prices_every_length_as_netem_does(gbit: float) -> None:
    rate = int(gbit * 10**9) // 8
    reciprocal = Reciprocal.of(policer_rate(rate))
    assert all(reciprocal.time_ns(n) == exact_ns(n, rate) for n in range(42, 70_000, 7))


@given(
    st.lists(st.tuples(st.integers(0, 30_000), st.integers(42, 9_014)), min_size=1, max_size=400)
)
@settings(deadline=None)
def test_the_policer_admits_what_a_tail_drop_queue_has_room_for(
    arrivals: list[tuple[int, int]],
) -> None:
    rate, buffer_ns = 1_250_000_000, 80_000
    cost = Reciprocal.of(policer_rate(rate)).time_ns
    tokens, last, now, free_at = buffer_ns, 0, 0, 0
    for gap, length in arrivals:
        now += gap
        price = exact_ns(length, rate)
        left = min(buffer_ns, tokens + now - last) - cost(length)
        queued = max(0, free_at - now)
        assert (left >= 0) == (queued + price <= buffer_ns)
        if left >= 0:
            tokens, last = left, now
            free_at = max(free_at, now) + price
