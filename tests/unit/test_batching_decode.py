"""Continuous batching: never over memory or budget, first come first served, all end."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.agent import Hardware, Shape
from testbed.contract.serving import DeviceLimits, Reserve
from testbed_agents.batching import Batch, Feed, Limits, Preempted, Sequence, limits_of

pytestmark = pytest.mark.unit


def limits(**changes: int) -> Limits:
    values = {"max_batch": 4, "kv_bytes": 0, "bytes_per_token": 1, "fixed_bytes": 0} | changes
    return Limits(**values)


def held(batch: Batch, *sequences: Sequence) -> None:
    """Submits and loads sequences, all of which must find room."""
    for one in sequences:
        batch.submit(one)
        assert batch.admit() == one.identity
        assert batch.loaded(one.identity)


def fed(batch: Batch, **wanted: int) -> list[tuple[int, int]]:
    """Plans and runs a step; keys are ``s`` and the identity."""
    step = batch.plan({int(name[1:]): tokens for name, tokens in wanted.items()})
    if step.feeds:
        batch.complete()
    return [(feed.identity, feed.tokens) for feed in step.feeds]


def test_a_sequence_is_fed_what_it_wants_behind_what_was_loaded() -> None:
    batch = Batch(limits())
    held(batch, Sequence(7, kept=9, end=12))
    step = batch.plan({7: 1})
    assert step.feeds == (Feed(7, start=9, tokens=1),)
    batch.complete()
    assert batch.plan({7: 2}).feeds == (Feed(7, start=10, tokens=2),)
    assert batch.kv_bytes == 12
    batch.complete()
    assert batch.plan({7: 0}).feeds == ()
    assert batch.remove(7)
    assert batch.kv_bytes == 0


def test_who_is_not_loaded_holds_memory_and_is_not_fed() -> None:
    batch = Batch(limits(kv_bytes=20))
    batch.submit(Sequence(1, kept=5, end=9))
    assert batch.plan({1: 1}).feeds == ()
    assert batch.admit() == 1
    assert batch.kv_bytes == 5
    assert batch.plan({1: 1}).feeds == ()
    assert batch.loaded(1)
    assert fed(batch, s1=1) == [(1, 1)]
    batch.remove(1)
    assert not batch.loaded(1)


def test_extend_decode_takes_its_width_while_others_go_on() -> None:
    batch = Batch(limits(extend_width=6))
    held(batch, Sequence(1, kept=5, end=50), Sequence(2, kept=5, end=50))
    assert fed(batch, s1=1, s2=10) == [(1, 1), (2, 6)]


def test_the_memory_that_is_left_is_shared_evenly() -> None:
    batch = Batch(limits(kv_bytes=13))
    held(batch, *(Sequence(identity, kept=1, end=13) for identity in (1, 2, 3)))
    assert fed(batch, s1=40, s2=3, s3=40) == [(1, 4), (2, 3), (3, 3)]


def test_the_newest_is_preempted_and_comes_back_when_all_that_it_had_fits() -> None:
    batch = Batch(limits(kv_bytes=22))
    held(batch, Sequence(1, kept=8, end=20), Sequence(2, kept=10, end=16))
    assert fed(batch, s1=1, s2=1) == [(1, 1), (2, 1)]
    assert fed(batch, s1=1, s2=1) == [(1, 1), (2, 1)]
    step = batch.plan({1: 1, 2: 1})
    assert step.preempted == (Preempted(2, tokens=2),)
    assert step.feeds == (Feed(1, start=10, tokens=1),)
    batch.complete()
    assert (batch.held, batch.waiting, batch.kv_bytes) == ((1,), (2,), 11)
    assert batch.admit() is None  # 11 of 22 are free, but it had 12 and wants one more
    batch.remove(1)
    assert batch.admit() == 2
    assert batch.loaded(2)
    assert batch.plan({2: 3}).feeds == (Feed(2, start=10, tokens=3),)


def test_who_wants_nothing_keeps_its_memory_unless_an_older_one_needs_it() -> None:
    batch = Batch(limits(kv_bytes=12))
    held(batch, Sequence(1, kept=5, end=12), Sequence(2, kept=5, end=12))
    assert fed(batch, s1=2) == [(1, 2)]
    assert batch.held == (1, 2)
    assert batch.plan({1: 1}).preempted == (Preempted(2, tokens=0),)


def test_an_extend_decode_takes_only_the_memory_that_is_left() -> None:
    batch = Batch(limits(kv_bytes=30))
    held(batch, Sequence(1, kept=6, end=28), Sequence(2, kept=6, end=28))
    assert fed(batch, s1=1, s2=22) == [(1, 1), (2, 17)]
    assert batch.kv_bytes == 30
    assert [one.identity for one in batch.plan({1: 1, 2: 1}).preempted] == [2]


def test_a_sequence_that_could_never_end_is_refused() -> None:
    batch = Batch(limits(kv_bytes=30, fixed_bytes=10))
    with pytest.raises(ValueError, match="never be held"):
        batch.submit(Sequence(1, kept=0, end=21))
    batch.submit(Sequence(2, kept=0, end=20))
    assert batch.waiting == (2,)


def test_headroom_keeps_a_newcomer_out_but_never_the_first() -> None:
    batch = Batch(limits(kv_bytes=40, headroom_tokens=100))
    held(batch, Sequence(1, kept=5, end=30))
    batch.submit(Sequence(2, kept=5, end=30))
    assert batch.admit() is None


def test_nobody_overtakes_the_oldest_that_waits() -> None:
    batch = Batch(limits(kv_bytes=20))
    held(batch, Sequence(1, kept=10, end=15))
    batch.submit(Sequence(2, kept=15, end=20))
    batch.submit(Sequence(3, kept=1, end=2))
    assert batch.admit() is None
    batch.remove(2)
    assert batch.admit() == 3


def test_a_whole_reserve_counts_what_will_come() -> None:
    batch = Batch(Limits(4, 20, 1, 0, whole=True))
    held(batch, Sequence(1, kept=5, end=12))
    batch.submit(Sequence(2, kept=5, end=9))
    assert batch.admit() is None


def test_rows_from_elsewhere_need_room_and_a_loaded_sequence() -> None:
    batch = Batch(limits(kv_bytes=20))
    held(batch, Sequence(1, kept=5, end=15), Sequence(2, kept=5, end=15))
    assert batch.grow(1, 10)
    assert not batch.grow(2, 1)
    assert not batch.grow(9, 1)
    with pytest.raises(ValueError, match="cannot grow"):
        batch.grow(1, 1)


def test_a_sequence_that_leaves_during_a_step_gives_its_memory_back() -> None:
    batch = Batch(limits())
    held(batch, Sequence(1, kept=5, end=30))
    batch.plan({1: 1})
    assert batch.remove(1)
    assert not batch.remove(1)
    batch.complete()
    assert batch.plan({}).feeds == ()
    assert batch.kv_bytes == 0


def test_misuse_is_refused() -> None:
    batch = Batch(limits())
    with pytest.raises(ValueError, match="no step"):
        batch.complete()
    held(batch, Sequence(1, kept=5, end=7))
    with pytest.raises(ValueError, match="already"):
        batch.submit(Sequence(1, kept=5, end=30))
    with pytest.raises(ValueError, match="ends at 7"):
        batch.plan({1: 3})
    batch.plan({1: 1})
    with pytest.raises(ValueError, match="not complete"):
        batch.plan({})
    with pytest.raises(ValueError, match="at least one sequence"):
        limits(max_batch=0)
    with pytest.raises(ValueError, match="below zero"):
        limits(kv_bytes=-1)
    with pytest.raises(ValueError, match="does not hold"):
        Sequence(1, kept=6, end=6)


def test_limits_come_from_the_profile_the_shape_and_the_choice() -> None:
    hardware = Hardware(
        name="h", source="made up", prefill_base_s=0, prefill_token_s=0, prefill_attention_s=0,
        decode_base_s=0, decode_sequence_s=0, decode_context_s=0, max_batch=3,
        kv_memory_bytes=1000, extend_width=5,
    )  # fmt: skip
    shape = Shape(block_tokens=128, ratio=128, bytes_per_token=2, fixed_bytes=7)
    found = limits_of(hardware, shape, DeviceLimits(headroom_tokens=4))
    assert (found.max_batch, found.kv_bytes, found.extend_width) == (3, 1000, 5)
    assert (found.headroom_tokens, found.whole, found.size(10)) == (4, False, 27)
    chosen = DeviceLimits(reserve=Reserve.WHOLE)
    assert limits_of(hardware, shape, chosen, 500).kv_bytes == 500
    assert limits_of(hardware, shape, chosen, 500).whole


@dataclass(frozen=True)
class Arrival:
    """A sequence: the turn before which it arrives, its prompt, its answer, how it is fed."""

    turn: int
    kept: int
    answer: int
    known: int
    """Ids of the answer that are known from the start, as those of RLD are."""
    idle: int
    """Turns in which it wants nothing."""


ARRIVALS = st.lists(
    st.builds(
        Arrival, st.integers(0, 6), st.integers(0, 8), st.integers(1, 12), st.integers(1, 12),
        st.integers(0, 3),
    ),
    min_size=1, max_size=8,
)  # fmt: skip
LIMITS = st.builds(
    Limits, max_batch=st.integers(1, 4), kv_bytes=st.one_of(st.just(0), st.integers(20, 60)),
    bytes_per_token=st.integers(1, 2), fixed_bytes=st.integers(0, 5),
    extend_width=st.integers(0, 8),
    headroom_tokens=st.integers(0, 4), whole=st.booleans(),
)  # fmt: skip


@settings(deadline=None)  # many steps of an example take time, more so beside other work
@given(arrivals=ARRIVALS, limits=LIMITS, aborted=st.sets(st.integers(0, 7), max_size=3))
def test_never_over_a_limit_in_order_of_arrival_and_everything_ends(
    arrivals: list[Arrival], limits: Limits, aborted: set[int]
) -> None:
    batch = Batch(limits)
    todo = dict(enumerate(arrivals))
    order: list[int] = []
    done: dict[int, int] = {}  # answer tokens with KV
    most: dict[int, int] = {}  # most that it ever had
    work = sum(one.answer + one.idle + 2 for one in arrivals)
    for turn in range(20 + 3 * len(arrivals) * work):
        for identity in [i for i, one in todo.items() if one.turn <= turn]:
            one = todo.pop(identity)
            if batch.fits(one.kept + one.answer):
                batch.submit(Sequence(identity, one.kept, one.kept + one.answer))
                order.append(identity)
                done[identity] = most[identity] = 0
        if turn == 7:
            for identity in aborted & set(order):
                batch.remove(identity)
                order.remove(identity)
        while (admitted := batch.admit()) is not None:
            assert batch.loaded(admitted)
            done[admitted] = 0
        wanted = {
            i: min(arrivals[i].answer, max(arrivals[i].known, most[i] + 1)) - done[i]
            for i in batch.held
            if turn >= arrivals[i].turn + arrivals[i].idle
        }
        step = batch.plan(wanted)
        for gone in step.preempted:
            assert not limits.whole
            assert gone.tokens == done[gone.identity]
        assert (*batch.held, *batch.waiting) == tuple(order)
        assert len(batch.held) <= limits.max_batch
        for feed in step.feeds:
            assert 1 <= feed.tokens <= wanted[feed.identity]
            assert not limits.extend_width or feed.tokens <= limits.extend_width
            assert feed.start == arrivals[feed.identity].kept + done[feed.identity]
            done[feed.identity] += feed.tokens
            most[feed.identity] = max(most[feed.identity], done[feed.identity])
        assert limits.holds(batch.kv_bytes)
        assert batch.kv_bytes == sum(limits.size(arrivals[i].kept + done[i]) for i in batch.held)
        if step.feeds:
            batch.complete()
        for identity in [i for i in batch.held if done[i] == arrivals[i].answer]:
            batch.remove(identity)
            order.remove(identity)
    assert order == []
    assert batch.kv_bytes == 0
