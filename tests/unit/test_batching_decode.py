"""Continuous batching: never over memory or budget, first come first served, all end."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.agent import Hardware, Shape
from testbed_agents.batching import Batch, Feed, Limits, Refused, Sequence
from testbed_agents.batching.limits import limits_of

pytestmark = pytest.mark.unit

ROOMY = Limits(max_batch=4, kv_bytes=0, bytes_per_token=1, fixed_bytes=0, step_tokens=16)


def limits(**changes: int) -> Limits:
    values = {
        "max_batch": 4, "kv_bytes": 0, "bytes_per_token": 1, "fixed_bytes": 0, "step_tokens": 16,
    } | changes  # fmt: skip
    return Limits(**values)


def feeds(batch: Batch) -> list[tuple[int, int]]:
    step = batch.plan()
    return [] if step is None else [(feed.identity, feed.tokens) for feed in step.feeds]


def test_a_sequence_decodes_one_token_a_step_and_ends() -> None:
    batch = Batch(ROOMY)
    batch.submit(Sequence(7, context=9, known=10, end=12))
    ends = []
    while (step := batch.plan()) is not None:
        assert [feed.tokens for feed in step.feeds] == [1]
        ends.append(batch.complete())
    assert ends == [(), (), (7,)]
    assert batch.kv_bytes == 0


def test_extend_decode_takes_its_width_while_others_go_on() -> None:
    batch = Batch(limits(extend_width=6))
    batch.submit(Sequence(1, context=5, known=6, end=50))
    batch.submit(Sequence(2, context=5, known=15, end=50))
    assert feeds(batch) == [(1, 1), (2, 6)]
    batch.complete()
    assert feeds(batch) == [(1, 1), (2, 4)]
    batch.complete()
    assert feeds(batch) == [(1, 1), (2, 1)]


def test_a_step_counts_what_the_hardware_profile_asks_for() -> None:
    batch = Batch(ROOMY)
    batch.submit(Sequence(1, context=100, known=101, end=500))
    batch.submit(Sequence(2, context=50, known=60, end=500))
    step = batch.plan()
    assert step is not None
    assert (step.batch, step.context, step.extra) == (2, 150, 9)
    assert step.feeds[1] == Feed(2, start=50, tokens=10)


def test_the_budget_of_a_step_is_shared_evenly() -> None:
    batch = Batch(limits(step_tokens=10))
    for identity, known in ((1, 40), (2, 3), (3, 40)):
        batch.submit(Sequence(identity, context=0, known=known, end=90))
    assert feeds(batch) == [(1, 4), (2, 3), (3, 3)]


def test_ids_that_arrive_late_are_fed_and_old_news_is_ignored() -> None:
    batch = Batch(ROOMY)
    batch.submit(Sequence(1, context=4, known=5, end=20))
    assert feeds(batch) == [(1, 1)]
    batch.learn(1, 9)
    batch.complete()
    batch.learn(1, 6)
    assert feeds(batch) == [(1, 4)]
    with pytest.raises(ValueError, match="ends at 20"):
        batch.learn(1, 21)


def test_the_newest_is_preempted_and_computes_its_own_tokens_again() -> None:
    batch = Batch(limits(kv_bytes=22, extend_width=2))
    batch.submit(Sequence(1, context=8, known=9, end=20))
    batch.submit(Sequence(2, context=18, known=19, end=25, prefix=8))
    assert feeds(batch) == [(1, 1), (2, 1)]
    batch.complete()
    assert feeds(batch) == [(1, 1), (2, 1)]
    batch.complete()
    step = batch.plan()
    assert step is not None
    assert (step.preempted, step.admitted) == ((2,), ())
    assert (batch.running, batch.waiting) == ((1,), (2,))
    while 1 in batch.running:
        batch.complete()
        step = batch.plan()
    # From its prefix at 8 up to the last known id at 21, wider than an extend-decode.
    assert step is not None
    assert step.feeds == (Feed(2, start=8, tokens=13),)


def test_an_extend_decode_takes_only_the_memory_that_is_left() -> None:
    batch = Batch(limits(kv_bytes=30, step_tokens=100))
    batch.submit(Sequence(1, context=5, known=6, end=28))
    batch.submit(Sequence(2, context=5, known=6, end=28))
    batch.plan()
    batch.complete()
    batch.learn(2, 28)
    # Both hold 6 and take one more, which leaves 30 - 14 for the second.
    assert feeds(batch) == [(1, 1), (2, 17)]
    batch.complete()
    assert batch.kv_bytes == 30
    step = batch.plan()
    assert step is not None
    assert step.preempted == (2,)


def test_a_sequence_that_could_never_end_is_refused() -> None:
    batch = Batch(limits(kv_bytes=30, fixed_bytes=10))
    assert batch.submit(Sequence(1, context=0, known=1, end=21)) is Refused.TOO_LONG
    assert batch.submit(Sequence(2, context=0, known=1, end=20)) is None
    assert batch.submit(Sequence(3, context=90, known=91, end=100, prefix=85)) is None


def test_headroom_keeps_a_newcomer_out_but_never_the_first() -> None:
    batch = Batch(limits(kv_bytes=40, headroom_tokens=100))
    batch.submit(Sequence(1, context=5, known=6, end=30))
    batch.submit(Sequence(2, context=5, known=6, end=30))
    assert feeds(batch) == [(1, 1)]


def test_a_sequence_that_leaves_during_a_step_gives_its_memory_back() -> None:
    batch = Batch(ROOMY)
    batch.submit(Sequence(1, context=5, known=6, end=30))
    batch.plan()
    assert batch.remove(1)
    assert not batch.remove(1)
    assert batch.complete() == ()
    assert batch.plan() is None
    assert batch.kv_bytes == 0


def test_misuse_is_refused() -> None:
    batch = Batch(ROOMY)
    with pytest.raises(ValueError, match="no step"):
        batch.complete()
    batch.submit(Sequence(1, context=5, known=6, end=30))
    with pytest.raises(ValueError, match="already"):
        batch.submit(Sequence(1, context=5, known=6, end=30))
    batch.plan()
    with pytest.raises(ValueError, match="not complete"):
        batch.plan()
    with pytest.raises(ValueError, match="not here"):
        batch.learn(9, 10)
    with pytest.raises(ValueError, match="at least one token"):
        limits(step_tokens=3)
    with pytest.raises(ValueError, match="below zero"):
        limits(kv_bytes=-1)
    with pytest.raises(ValueError, match="does not hold"):
        Sequence(1, context=6, known=6, end=30)


def test_limits_come_from_the_profile_and_the_shape() -> None:
    hardware = Hardware(
        name="h", source="made up", prefill_base_s=0, prefill_token_s=0, prefill_attention_s=0,
        decode_base_s=0, decode_sequence_s=0, decode_context_s=0, max_batch=3,
        kv_memory_bytes=1000, extend_width=5,
    )  # fmt: skip
    shape = Shape(block_tokens=128, ratio=128, bytes_per_token=2, fixed_bytes=7)
    found = limits_of(hardware, shape, step_tokens=8)
    assert (found.max_batch, found.kv_bytes, found.extend_width) == (3, 1000, 5)
    assert found.size(10) == 27


@dataclass(frozen=True)
class Arrival:
    """A sequence and the step before which it arrives."""

    step: int
    prefix: int
    context: int
    pending: int
    more: int
    late: int
    """Further ids that arrive from elsewhere three steps later."""


ARRIVALS = st.lists(
    st.builds(
        Arrival,
        step=st.integers(0, 20), prefix=st.integers(0, 20), context=st.integers(0, 30),
        pending=st.integers(1, 20), more=st.integers(0, 15), late=st.integers(0, 15),
    ),
    min_size=1, max_size=12,
)  # fmt: skip
LIMITS = st.builds(
    Limits,
    max_batch=st.integers(1, 5), kv_bytes=st.one_of(st.just(0), st.integers(40, 300)),
    bytes_per_token=st.integers(1, 3), fixed_bytes=st.integers(0, 10),
    step_tokens=st.integers(5, 30), extend_width=st.integers(0, 8),
    headroom_tokens=st.integers(0, 4),
)  # fmt: skip


@given(arrivals=ARRIVALS, limits=LIMITS, aborted=st.sets(st.integers(0, 11), max_size=3))
def test_never_over_a_limit_in_order_of_arrival_and_everything_ends(
    arrivals: list[Arrival], limits: Limits, aborted: set[int]
) -> None:
    batch = Batch(limits)
    todo = dict(enumerate(arrivals))
    order: list[int] = []
    has_kv: dict[int, int] = {}
    ends: dict[int, int] = {}
    ended: list[int] = []
    work = sum(a.context + a.pending + a.more for a in arrivals)
    for turn in range(20 + 2 * len(arrivals) * (work + 1)):
        for identity in [i for i, one in todo.items() if one.step <= turn]:
            one = todo.pop(identity)
            context = one.prefix + one.context
            known = context + one.pending
            sequence = Sequence(identity, context, known, known + one.more, one.prefix)
            if batch.submit(sequence) is None:
                order.append(identity)
                has_kv[identity], ends[identity] = context, known + one.more
        for identity in {*batch.running, *batch.waiting}:
            one = arrivals[identity]
            if turn == one.step + 3:
                known = one.prefix + one.context + one.pending + one.late
                batch.learn(identity, min(known, ends[identity]))
        if turn == 5:
            for identity in aborted & set(order):
                if batch.remove(identity):
                    order.remove(identity)
        step = batch.plan()
        if step is None:
            if not todo:
                break
            continue
        alive = [identity for identity in order if identity not in ended]
        assert batch.running == tuple(alive[: step.batch])
        assert batch.waiting == tuple(alive[step.batch :])
        for identity in step.preempted:
            has_kv[identity] = arrivals[identity].prefix
        assert step.batch <= limits.max_batch
        assert sum(feed.tokens for feed in step.feeds) <= limits.step_tokens
        for feed in step.feeds:
            assert feed.tokens >= 1
            assert feed.start == has_kv[feed.identity]
            has_kv[feed.identity] += feed.tokens
        ended += batch.complete()
        held = sum(
            limits.size(has_kv[feed.identity] - arrivals[feed.identity].prefix)
            for feed in step.feeds
        )
        assert limits.holds(held)
    assert sorted(ended) == sorted(order)
    assert all(has_kv[identity] == ends[identity] for identity in ended)
    assert (batch.running, batch.waiting, batch.kv_bytes) == ((), (), 0)
