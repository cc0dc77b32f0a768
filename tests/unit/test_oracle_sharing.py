"""The ideal link conserves work, keeps the pool's rules and meets queueing theory."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.errors import AnalysisError
from testbed.oracle import IdealLink, Outcome, Transfer, share

BYTE_PER_S = 8.0  # capacity in bit/s that carries one byte a second

transfer_lists = st.lists(
    st.tuples(st.integers(0, 50).map(float), st.integers(0, 40), st.sampled_from(["a", "b"])),
    min_size=1,
    max_size=30,
).map(lambda rows: [Transfer(i, at, size, pair) for i, (at, size, pair) in enumerate(rows)])


def release_s(outcome: Outcome) -> float:
    return outcome.at_s + outcome.wait_s + outcome.duration_s


def test_a_lone_transfer_gets_the_whole_link_and_one_round_trip() -> None:
    (outcome,) = share([Transfer(7, 3.0, 10)], IdealLink(BYTE_PER_S * 5, 1, latency_s=0.5))
    assert outcome.req == 7
    assert outcome.wait_s == 0.0
    assert outcome.duration_s == pytest.approx(2.5)


def test_two_transfers_share_equally() -> None:
    first, second = share([Transfer(0, 0.0, 10), Transfer(1, 0.0, 4)], IdealLink(BYTE_PER_S, 2))
    assert second.duration_s == pytest.approx(8.0)  # half the link until its 4 bytes are gone
    assert first.duration_s == pytest.approx(14.0)  # then the rest alone


def test_a_late_arrival_slows_the_first_down() -> None:
    first, second = share([Transfer(0, 0.0, 10), Transfer(1, 6.0, 10)], IdealLink(BYTE_PER_S, 2))
    assert first.duration_s == pytest.approx(14.0)
    assert second.duration_s == pytest.approx(14.0)


def test_one_connection_is_a_first_come_first_served_queue() -> None:
    rows = [Transfer(i, float(i), 10) for i in range(4)]
    outcomes = share(rows, IdealLink(BYTE_PER_S, 1))
    assert [outcome.wait_s for outcome in outcomes] == pytest.approx([0.0, 9.0, 18.0, 27.0])
    assert [outcome.duration_s for outcome in outcomes] == pytest.approx([10.0] * 4)


def test_the_connection_is_held_for_the_round_trip() -> None:
    first, second = share(
        [Transfer(0, 0.0, 1), Transfer(1, 0.0, 1)], IdealLink(BYTE_PER_S, 1, latency_s=2.0)
    )
    assert first.duration_s == pytest.approx(3.0)
    assert second.wait_s == pytest.approx(3.0)


def test_a_bound_per_connection_leaves_capacity_idle() -> None:
    (outcome,) = share([Transfer(0, 0.0, 10)], IdealLink(BYTE_PER_S * 100, 4, 0.0, BYTE_PER_S))
    assert outcome.duration_s == pytest.approx(10.0)


def test_pools_of_two_pairs_are_separate_but_share_the_link() -> None:
    rows = [Transfer(0, 0.0, 6, "a"), Transfer(1, 0.0, 6, "b"), Transfer(2, 0.0, 6, "a")]
    outcomes = share(rows, IdealLink(BYTE_PER_S, 1))
    assert [outcome.wait_s for outcome in outcomes] == pytest.approx([0.0, 0.0, 12.0])
    assert [outcome.duration_s for outcome in outcomes] == pytest.approx([12.0, 12.0, 6.0])


def test_an_empty_transfer_takes_only_the_round_trip() -> None:
    (outcome,) = share([Transfer(0, 1.0, 0)], IdealLink(BYTE_PER_S, 1, latency_s=0.25))
    assert outcome.duration_s == pytest.approx(0.25)


@pytest.mark.parametrize(("capacity", "pool", "latency"), [(0, 1, 0), (8, 0, 0), (8, 1, -1)])
def test_an_impossible_link_is_refused(capacity: float, pool: int, latency: float) -> None:
    with pytest.raises(AnalysisError, match="out of range"):
        IdealLink(capacity, pool, latency)


@given(transfer_lists, st.integers(1, 5))
def test_work_is_conserved(rows: list[Transfer], pool: int) -> None:
    """Without latency some transfer is active whenever one is present, so the busy
    periods are those of any work-conserving queue at the same capacity."""
    outcomes = share(rows, IdealLink(BYTE_PER_S, pool))
    clock = 0.0
    for row in sorted(rows, key=lambda row: row.at_s):
        clock = max(clock, row.at_s) + row.size_bytes
    last = max(release_s(outcome) for outcome in outcomes)
    latest_arrival = max(row.at_s for row in rows)
    assert last == pytest.approx(max(clock, latest_arrival), abs=1e-6)


@given(transfer_lists, st.integers(1, 4), st.sampled_from([0.0, 0.5]))
def test_a_pair_never_holds_more_than_its_pool_and_serves_in_order(
    rows: list[Transfer], pool: int, latency: float
) -> None:
    outcomes = share(rows, IdealLink(BYTE_PER_S, pool, latency))
    for pair in ("a", "b"):
        own = [outcome for outcome, row in zip(outcomes, rows, strict=True) if row.pair == pair]
        own.sort(key=lambda outcome: (outcome.at_s, outcome.req))
        starts = [outcome.at_s + outcome.wait_s for outcome in own]
        assert starts == sorted(starts)
        for start in starts:
            held = sum(
                outcome.at_s + outcome.wait_s <= start + 1e-9 and release_s(outcome) > start + 1e-6
                for outcome in own
            )
            assert held <= pool
        assert all(outcome.wait_s >= 0 and outcome.duration_s >= 0 for outcome in own)


@given(transfer_lists)
def test_without_a_pool_limit_more_capacity_never_makes_anyone_slower(
    rows: list[Transfer],
) -> None:
    slow = share(rows, IdealLink(BYTE_PER_S, len(rows)))
    fast = share(rows, IdealLink(BYTE_PER_S * 1.5, len(rows)))
    for before, after in zip(slow, fast, strict=True):
        assert after.wait_s + after.duration_s <= before.wait_s + before.duration_s + 1e-6


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32))
def test_mean_sojourn_is_that_of_processor_sharing(seed: int) -> None:
    """M/G/1-PS: mean time of a job of size x is x / (C (1 - load)), whatever the sizes."""
    draw = np.random.Generator(np.random.PCG64(seed))
    count, load = 20_000, 0.6
    at = np.cumsum(draw.exponential(1.0, count))
    sizes = draw.choice([20, 180], count, p=[0.5, 0.5])  # mean 100 bytes each second
    capacity = 100 / load
    rows = [Transfer(i, float(t), int(s)) for i, (t, s) in enumerate(zip(at, sizes, strict=True))]
    outcomes = share(rows, IdealLink(capacity * 8, count))
    for size in (20, 180):
        mean = np.mean([o.duration_s for o in outcomes if o.size_bytes == size])
        assert mean == pytest.approx(size / (capacity * (1 - load)), rel=0.12)


def test_five_thousand_transfers_do_not_take_minutes() -> None:
    draw = np.random.Generator(np.random.PCG64(1))
    at = np.cumsum(draw.exponential(1 / 80, 5_000))
    sizes = draw.exponential(31e6, 5_000)
    rows = [Transfer(i, float(t), int(s)) for i, (t, s) in enumerate(zip(at, sizes, strict=True))]
    begin = time.perf_counter()
    outcomes = share(rows, IdealLink(19.8e9, 160, 0.02))
    # Not a speed test: sharing in quadratic time would take minutes.
    assert time.perf_counter() - begin < 20.0
    assert max(outcome.wait_s for outcome in outcomes) > 0.0
