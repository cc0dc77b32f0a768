"""Prefill passes: chunks, order of arrival, limits; and what cutting costs in time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.agent import Hardware
from testbed_agents.hardware import prefill_ns, prefill_pass_ns
from testbed_agents.prefill.schedule import Chunk, Job, PrefillSchedule

pytestmark = pytest.mark.unit

HARDWARE = Hardware(
    name="test", source="made up", prefill_base_s=0.01, prefill_token_s=1e-5,
    prefill_attention_s=1e-9, decode_base_s=0, decode_sequence_s=0, decode_context_s=0,
)  # fmt: skip


def test_the_oldest_fills_the_chunk_and_the_next_takes_what_is_left() -> None:
    schedule = PrefillSchedule(chunk_tokens=100, max_batch=2)
    for job in (Job(1, 130, 50), Job(2, 60, 0), Job(3, 10, 0)):
        schedule.submit(job)
    assert schedule.tokens == 200
    assert schedule.plan() == (Chunk(1, 100, 50, False),)
    assert schedule.complete() == ()
    assert schedule.plan() == (Chunk(1, 30, 150, True), Chunk(2, 60, 0, True))
    assert schedule.complete() == (1, 2)
    assert schedule.plan() == (Chunk(3, 10, 0, True),)
    assert schedule.complete() == (3,)
    assert schedule.plan() == ()
    assert (schedule.jobs, schedule.tokens) == (0, 0)


def test_a_prompt_that_is_all_cached_ends_with_the_pass() -> None:
    schedule = PrefillSchedule(chunk_tokens=8, max_batch=4)
    schedule.submit(Job(1, 8, 0))
    schedule.submit(Job(2, 0, 640))
    assert schedule.plan() == (Chunk(1, 8, 0, True), Chunk(2, 0, 640, True))
    assert schedule.complete() == (1, 2)


def test_a_job_cancelled_during_its_pass_does_not_end() -> None:
    schedule = PrefillSchedule(chunk_tokens=8, max_batch=1)
    schedule.submit(Job(1, 4, 0))
    schedule.plan()
    assert schedule.cancel(1)
    assert not schedule.cancel(1)
    schedule.submit(Job(1, 6, 0))
    assert schedule.complete() == ()
    assert schedule.plan() == (Chunk(1, 6, 0, True),)


def test_misuse_is_refused() -> None:
    schedule = PrefillSchedule(chunk_tokens=8, max_batch=1)
    with pytest.raises(ValueError, match="no pass"):
        schedule.complete()
    schedule.submit(Job(1, 4, 0))
    with pytest.raises(ValueError, match="already"):
        schedule.submit(Job(1, 4, 0))
    schedule.plan()
    with pytest.raises(ValueError, match="not complete"):
        schedule.plan()
    with pytest.raises(ValueError, match="at least one"):
        PrefillSchedule(chunk_tokens=0, max_batch=1)
    with pytest.raises(ValueError, match="fewer than none"):
        Job(1, -1, 0)


@given(
    jobs=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=12),
    chunk=st.integers(1, 120),
    batch=st.integers(1, 5),
)
def test_jobs_end_in_order_and_each_token_is_computed_once(
    jobs: list[tuple[int, int]], chunk: int, batch: int
) -> None:
    schedule = PrefillSchedule(chunk, batch)
    for identity, (uncached, cached) in enumerate(jobs):
        schedule.submit(Job(identity, uncached, cached))
    computed = [cached for _, cached in jobs]
    ended: list[int] = []
    while passed := schedule.plan():
        assert len(passed) <= batch
        assert sum(one.tokens for one in passed) <= chunk
        for one in passed:
            assert one.context == computed[one.identity]
            computed[one.identity] += one.tokens
        ended += schedule.complete()
    assert ended == list(range(len(jobs)))
    assert computed == [uncached + cached for uncached, cached in jobs]


@given(uncached=st.integers(1, 5_000), cached=st.integers(0, 60_000), chunk=st.integers(100, 2_000))
def test_cutting_a_prompt_costs_one_base_for_each_further_pass(
    uncached: int, cached: int, chunk: int
) -> None:
    schedule = PrefillSchedule(chunk, 1)
    schedule.submit(Job(1, uncached, cached))
    passes = []
    while passed := schedule.plan():
        passes.append(prefill_pass_ns(HARDWARE, [(one.tokens, one.context) for one in passed]))
        schedule.complete()
    base_ns = 10_000_000 * (len(passes) - 1)
    assert sum(passes) == pytest.approx(
        prefill_ns(HARDWARE, uncached, cached) + base_ns, abs=len(passes)
    )
