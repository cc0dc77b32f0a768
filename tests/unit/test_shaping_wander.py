"""Jitter that keeps order: the process, and the program that carries it out."""

from __future__ import annotations

import struct
from statistics import fmean, pstdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.link import Distribution, Jitter
from testbed.errors import PlanError
from testbed.shaping.pacer_program import map_value, program, tag
from testbed.shaping.wander import BINS, delay_at, wander

DELAY, SPREAD = 15_000_000, 200_000
NORMAL = Jitter(spread_ns=SPREAD)


@pytest.mark.parametrize("shape", list(Distribution))
def test_over_a_period_the_delay_has_the_wanted_mean_and_spread(shape: Distribution) -> None:
    pacer = wander(DELAY, Jitter(spread_ns=SPREAD, distribution=shape), 3)
    width = 1 << pacer.shift
    delays = [delay_at(pacer, k * width // 4) for k in range(4 * BINS)]
    expected = SPREAD / 3**0.5 if shape is Distribution.UNIFORM else SPREAD
    assert fmean(delays) == pytest.approx(DELAY, abs=SPREAD / 100)
    assert pstdev(delays) == pytest.approx(expected, rel=0.02)


@given(st.integers(0, 2**62), st.integers(0, 10_000_000), st.sampled_from(list(Distribution)))
@settings(deadline=None)
def test_no_packet_overtakes_another(now: int, later: int, shape: Distribution) -> None:
    pacer = wander(DELAY, Jitter(spread_ns=SPREAD, distribution=shape), 3)
    first, second = now, now + later
    assert first + delay_at(pacer, first) <= second + delay_at(pacer, second) + 1


def test_the_path_is_a_function_of_the_seed() -> None:
    assert wander(DELAY, NORMAL, 3) == wander(DELAY, NORMAL, 3)
    assert wander(DELAY, NORMAL, 3).delays_ns != wander(DELAY, NORMAL, 4).delays_ns


def test_neighbours_are_alike_and_strangers_are_not() -> None:
    delays = wander(DELAY, NORMAL, 3).delays_ns

    def likeness(lag: int) -> float:
        pairs = [(delays[i] - DELAY) * (delays[(i + lag) % BINS] - DELAY) for i in range(BINS)]
        return fmean(pairs) / pstdev(delays) ** 2

    assert likeness(1) > 0.95
    assert abs(likeness(100)) < 0.2


def test_a_delay_beyond_32_bits_is_refused() -> None:
    with pytest.raises(PlanError, match=r"4\.29 s"):
        wander(4_200_000_000, Jitter(spread_ns=100_000_000), 1)


def test_the_map_repeats_its_first_delay_at_the_end() -> None:
    pacer = wander(DELAY, NORMAL, 3)
    numbers = struct.unpack(f"={BINS + 1}I", map_value(pacer))
    assert numbers[:-1] == pacer.delays_ns
    assert numbers[-1] == numbers[0]


def test_the_hash_of_the_program_ignores_the_map_but_not_the_bins() -> None:
    one, other = wander(DELAY, NORMAL, 3), wander(DELAY, Jitter(spread_ns=2_000_000), 3)
    assert tag(one) == tag(wander(DELAY, NORMAL, 4))
    assert tag(one) != tag(other)
    assert len(program(one, 9)) % 8 == 0
