"""MD as a whole: answers, preemption, refusals, cancellation; memory is returned each time.

``play`` raises where anything still holds a lock, a reservation or device memory at the end.
"""

from __future__ import annotations

import asyncio

import pytest

from testbed.contract.event import Kind
from testbed.contract.handoff import HandoffMode
from testbed.contract.serving import FirstToken as Who
from testbed.contract.serving import Reserve
from testbed.errors import TestbedError
from testbed_agents.control.plane import Lost, Matched
from testbed_agents.handoff.message import (
    Cancel,
    Emission,
    Ending,
    Evicted,
    Failure,
    FirstToken,
    Refused,
    Takeover,
    TokenIds,
)
from testbed_agents.transport import INCREMENT
from tests.fakes.decode_stage import BLOCK, Stage, answer_to, play

pytestmark = pytest.mark.unit


def test_an_answer_is_that_of_one_engine() -> None:
    async def scene(stage: Stage) -> None:
        stage.prepare(1)
        assert await stage.kv(1) is None
        await stage.until_noted("released", 1)

    stage = play("md1", scene)
    assert stage.shown(1) == list(enumerate(stage.answer(1)))
    assert stage.events(Kind.SEQUENCE_PREEMPTED) == []
    stage.nothing_is_left()


def test_where_memory_runs_out_the_newest_waits_and_computes_its_tokens_again() -> None:
    async def scene(stage: Stage) -> None:
        for req in (1, 2, 3):
            stage.prepare(req)
            assert await stage.kv(req) is None
        await stage.until_noted("released", 1, 2, 3)

    stage = play("md1", scene, memory_tokens=2 * 2 * BLOCK + 10)
    preempted = stage.events(Kind.SEQUENCE_PREEMPTED)
    assert [(event["req"], event["tokens"]) for event in preempted] == [(2, 4), (3, 2)]
    admitted = [(e["req"], e["again"]) for e in stage.events(Kind.SEQUENCE_ADMITTED)]
    assert admitted == [(1, False), (2, False), (2, True), (3, False), (3, True)]
    for req in (1, 2, 3):
        assert stage.shown(req) == list(enumerate(stage.answer(req)))
    for event in (*preempted, *stage.events(Kind.SEQUENCE_ADMITTED)):
        assert int(str(event["size"])) <= (4 * BLOCK + 10) * 1_000
    stage.nothing_is_left()


@pytest.mark.parametrize("tokens", [2 * BLOCK + 12, 4 * BLOCK + 1, 4 * BLOCK + 14, 6 * BLOCK + 3])
@pytest.mark.parametrize("reserve", list(Reserve))
def test_any_size_of_memory_gives_the_same_answers_within_it(tokens: int, reserve: Reserve) -> None:
    async def scene(stage: Stage) -> None:
        for req in (1, 2, 3, 4):
            stage.prepare(req)
            await stage.kv(req)
            await stage.at_ms(25 * req)
        await stage.until_noted("released", 1, 2, 3, 4)

    stage = play("md1", scene, memory_tokens=tokens, reserve=reserve)
    for req in (1, 2, 3, 4):
        assert stage.shown(req) == list(enumerate(stage.answer(req)))
    for event in stage.events(Kind.SEQUENCE_ADMITTED):
        assert int(str(event["size"])) <= tokens * 1_000
    if reserve is Reserve.WHOLE:
        assert stage.events(Kind.SEQUENCE_PREEMPTED) == []
    stage.nothing_is_left()


def test_with_room_for_the_whole_answer_nobody_is_preempted() -> None:
    async def scene(stage: Stage) -> None:
        for req in (1, 2):
            stage.prepare(req)
            assert await stage.kv(req) is None
        await stage.until_noted("released", 1, 2)

    stage = play("md1", scene, memory_tokens=4 * BLOCK + 20, reserve=Reserve.WHOLE)
    assert stage.events(Kind.SEQUENCE_PREEMPTED) == []
    first, second = stage.events(Kind.SEQUENCE_ADMITTED)
    assert second["t"] > first["t"] + 12 * 10_000_000  # type: ignore[operator]
    stage.nothing_is_left()


def test_a_prompt_that_can_never_fit_is_refused_and_p_sends_nothing() -> None:
    async def scene(stage: Stage) -> None:
        stage.prepare(1, blocks=2, relay="r1")
        await stage.until_noted("released", 1)
        stage.post.say("r1", Evicted(1, 12, Ending.LAST))
        stage.prepare(2, blocks=2)
        await stage.until_noted("released", 2)

    stage = play("md1", scene, memory_tokens=BLOCK)
    assert stage.post.to("p1") == [Matched(1, 2), Matched(2, 2)]
    assert stage.post.to("r1") == [Refused(1, "kv-memory-too-small")]
    assert stage.post.to("c1") == [Failure(2, "kv-memory-too-small")]
    stage.nothing_is_left()


def test_kv_of_the_wrong_size_is_refused_and_the_answer_fails() -> None:
    async def scene(stage: Stage) -> None:
        stage.prepare(1)
        assert "1 blocks, missing are 2" in str(await stage.kv(1, held=1))
        await stage.until_noted("released", 1)

    stage = play("md1", scene)
    assert stage.post.to("c1") == [Failure(1, "kv-refused")]
    stage.nothing_is_left()


def test_a_client_that_leaves_in_the_middle_frees_everything() -> None:
    async def scene(stage: Stage) -> None:
        stage.prepare(1)
        await stage.kv(1)
        await stage.post.until(lambda: len(stage.shown(1)) == 4)
        stage.post.say("rt1", Cancel(1))
        await stage.until_noted("released", 1)

    stage = play("md1", scene)
    assert len(stage.shown(1)) <= 5
    stage.nothing_is_left()


def test_eager_tokens_that_end_the_answer_leave_only_the_kv_to_md() -> None:
    async def scene(stage: Stage) -> None:
        stage.prepare(1, relay="r1")
        ids = stage.answer(1)[:3]
        stage.post.say("r1", TokenIds(1, 0, ids, True, 0))
        stage.post.say("r1", Evicted(1, 3, Ending.LAST))
        await stage.at_ms(50)
        assert await stage.kv(1) is None
        await stage.until_noted("released", 1)

    stage = play("md1", scene, stop_at=answer_to(1)[2])
    assert stage.shown(1) == []
    published = stage.events(Kind.CACHE_PUBLISHED)
    assert [event["blocks"] for event in published] == [2]
    stage.nothing_is_left()


def hand_over(stage: Stage, upto: int) -> None:
    """RLD has emitted ``upto`` tokens, and stops there when it is told to."""
    for position, token in enumerate(stage.answer(1)[:upto]):
        stage.post.say("r1", TokenIds(1, position, (token,), False, 0))


async def asks_for_rows(stage: Stage, upto: int) -> None:
    """MD has its KV and has asked RLD, which has told ``upto`` ids, to stop and keep its rows."""
    hand_over(stage, upto)
    await stage.kv(1)
    await stage.post.until(lambda: Takeover(1, 0, True) in stage.post.to("r1"))


async def awaits_rows(stage: Stage, upto: int) -> None:
    """MD has its KV, and RLD has stopped at ``upto`` and would send the rows of its tokens."""
    await asks_for_rows(stage, upto)
    stage.post.say("r1", Evicted(1, upto, Ending.TAKEOVER))


async def rows_come(stage: Stage, upto: int) -> TestbedError | None:
    """The increment of RLD arrives; returns why it was refused."""
    whole = stage.model.prefill((*stage.tokens(1), *stage.answer(1)[: upto - 1]))
    return await stage.inbox.bring(1, whole.part(15, 15 + upto).blocks(upto), epoch=INCREMENT)


@pytest.mark.parametrize("mode", [HandoffMode.CATCH_UP, HandoffMode.ONE_SHOT])
def test_md_goes_on_where_rld_ends(mode: HandoffMode) -> None:
    async def scene(stage: Stage) -> None:
        stage.prepare(1, relay="r1")
        hand_over(stage, 5)
        await stage.kv(1)
        await stage.post.until(lambda: any(isinstance(m, Takeover) for m in stage.post.to("r1")))
        (asked,) = [m for m in stage.post.to("r1") if isinstance(m, Takeover)]
        end = max(5, asked.position)
        hand_over(stage, end)
        stage.post.say("r1", Evicted(1, end, Ending.TAKEOVER))
        await stage.until_noted("released", 1)

    stage = play("md1", scene, mode=mode)
    shown = stage.shown(1)
    assert shown == list(enumerate(stage.answer(1)))[shown[0][0] :]
    assert shown[0][0] >= 5
    stage.nothing_is_left()


def test_an_increment_that_fails_is_computed_from_the_token_ids() -> None:
    async def scene(stage: Stage) -> None:
        stage.prepare(1, relay="r1")
        await awaits_rows(stage, 5)
        await stage.at_ms(40)
        wrong = stage.model.prefill(stage.tokens(1)[:3])
        assert await stage.inbox.bring(1, wrong.blocks(3), epoch=INCREMENT) is not None
        stage.post.say("r1", Failure(1, "connection-lost"))
        await stage.until_noted("released", 1)

    stage = play("md1", scene, mode=HandoffMode.INCREMENTAL_KV)
    assert stage.shown(1) == list(enumerate(stage.answer(1)))[5:]
    stage.nothing_is_left()


def test_an_increment_for_which_no_room_is_left_is_refused() -> None:
    async def scene(stage: Stage) -> None:
        stage.prepare(1, relay="r1")
        stage.prepare(2)
        await awaits_rows(stage, 6)
        await stage.kv(2)
        await stage.post.until(lambda: len(stage.shown(2)) == 3)
        assert "no room" in str(await rows_come(stage, 6))
        stage.post.say("r1", Failure(1, "refused"))
        await stage.until_noted("released", 1, 2)

    stage = play("md1", scene, mode=HandoffMode.INCREMENTAL_KV, memory_tokens=2 * 2 * BLOCK + 8)
    assert stage.shown(1) == list(enumerate(stage.answer(1)))[6:]
    assert stage.shown(2) == list(enumerate(stage.answer(2)))
    stage.nothing_is_left()


def test_rows_of_rld_may_overtake_its_word_where_they_end() -> None:
    async def scene(stage: Stage) -> None:
        stage.prepare(1, relay="r1")
        await asks_for_rows(stage, 6)
        async with asyncio.TaskGroup() as group:
            rows = group.create_task(rows_come(stage, 6))
            await stage.at_ms(40)
            assert not rows.done()
            stage.post.say("r1", Evicted(1, 6, Ending.TAKEOVER))
        assert rows.result() is None
        await stage.until_noted("released", 1)

    stage = play("md1", scene, mode=HandoffMode.INCREMENTAL_KV)
    assert stage.shown(1) == list(enumerate(stage.answer(1)))[6:]
    assert [event["computed"] for event in stage.events(Kind.HANDOFF_END)] == [0]
    stage.nothing_is_left()


@pytest.mark.parametrize("end", [Lost("r1"), Cancel(1)])
def test_rows_whose_end_is_never_told_are_not_waited_for(end: Lost | Cancel) -> None:
    async def scene(stage: Stage) -> None:
        stage.prepare(1, relay="r1")
        await asks_for_rows(stage, 6)
        async with asyncio.TaskGroup() as group:
            rows = group.create_task(rows_come(stage, 6))
            await stage.at_ms(40)
            stage.post.say("rt1" if isinstance(end, Lost) else "c1", end)
        assert rows.result() is not None
        await stage.until_noted("released", 1)

    play("md1", scene, mode=HandoffMode.INCREMENTAL_KV).nothing_is_left()


def test_rows_of_rld_save_their_computation() -> None:
    async def scene(stage: Stage) -> None:
        stage.prepare(1, relay="r1")
        await awaits_rows(stage, 6)
        await stage.at_ms(40)
        assert await rows_come(stage, 6) is None
        await stage.until_noted("released", 1)

    stage = play("md1", scene, mode=HandoffMode.INCREMENTAL_KV)
    assert stage.shown(1) == list(enumerate(stage.answer(1)))[6:]
    assert [event["computed"] for event in stage.events(Kind.HANDOFF_END)] == [0]
    stage.nothing_is_left()


def test_after_the_death_of_rld_md_answers_what_it_never_told() -> None:
    async def scene(stage: Stage) -> None:
        stage.prepare(1, relay="r1")
        hand_over(stage, 4)
        await stage.at_ms(5)
        stage.post.say("rt1", Lost("r1"))
        await stage.kv(1)
        await stage.until_noted("released", 1)

    stage = play("md1", scene)
    assert stage.shown(1) == list(enumerate(stage.answer(1)))[4:]
    stage.nothing_is_left()


@pytest.mark.parametrize("lost", ["p1", "c1"])
def test_a_lost_peer_ends_what_waits_for_it(lost: str) -> None:
    async def scene(stage: Stage) -> None:
        stage.prepare(1)
        await stage.at_ms(5)
        stage.post.say("rt1", Lost(lost))
        if lost == "c1":  # its KV still comes, and is kept
            await stage.at_ms(10)
            assert await stage.kv(1) is None
        await stage.until_noted("released", 1)

    stage = play("md1", scene)
    assert stage.post.to("c1") == ([Failure(1, "prefill-lost")] if lost == "p1" else [])
    stage.nothing_is_left()


@pytest.mark.parametrize("early", [True, False])
def test_behind_the_first_token_of_p_decode_begins_with_an_epoch_of_its_own(early: bool) -> None:
    async def scene(stage: Stage) -> None:
        stage.prepare(1)
        await stage.at_ms(1)
        first = FirstToken(1, stage.answer(1)[0], "")
        if early:
            stage.post.say("p1", first)
        await stage.kv(1)
        await stage.at_ms(30)
        if not early:
            assert stage.shown(1) == []
            stage.post.say("p1", first)
        await stage.until_noted("released", 1)

    stage = play("md1", scene, first=Who.PREFILL)
    assert stage.shown(1) == list(enumerate(stage.answer(1)))[1:]
    emissions = [m for m in stage.post.to("c1") if isinstance(m, Emission)]
    assert {(m.epoch, m.since) for m in emissions} == {(1, 1)}
    stage.nothing_is_left()
