"""MD: an answer that is over, or can never be given, takes no memory from the others."""

from __future__ import annotations

import pytest

from testbed.contract.event import Kind
from testbed.contract.serving import FirstToken as Who
from testbed_agents.control.plane import Lost, Note
from testbed_agents.handoff.message import (
    Cancel,
    Ending,
    Evicted,
    Failure,
    FirstToken,
    Refused,
    TokenIds,
)
from tests.fakes.decode_stage import BLOCK, Stage, play

pytestmark = pytest.mark.unit

ROOM_FOR_ONE = 2 * BLOCK + 12


def test_who_leaves_while_waiting_for_room_is_released_at_once_and_its_kv_kept() -> None:
    async def scene(stage: Stage) -> None:
        for req in (1, 2):
            stage.prepare(req)
            await stage.kv(req)
        await stage.post.until(lambda: len(stage.shown(1)) == 2)
        stage.post.say("rt1", Cancel(2))
        await stage.until_noted("released", 2)
        assert len(stage.shown(1)) < 12
        await stage.until_noted("released", 1)

    stage = play("md1", scene, memory_tokens=ROOM_FOR_ONE)
    assert [event["req"] for event in stage.events(Kind.SEQUENCE_ADMITTED)] == [1]
    published = stage.events(Kind.CACHE_PUBLISHED)
    assert {event["req"]: event["blocks"] for event in published} == {1: 2, 2: 2}
    stage.nothing_is_left()


@pytest.mark.parametrize("early", [True, False])
def test_an_answer_that_rld_ended_leaves_only_its_kv_and_needs_no_device(early: bool) -> None:
    async def scene(stage: Stage) -> None:
        stage.prepare(1)
        await stage.kv(1)
        stage.prepare(2, relay="r1")
        if not early:
            assert await stage.kv(2) is None
        stage.post.say("r1", TokenIds(2, 0, stage.answer(2), True, 0))
        stage.post.say("r1", Evicted(2, 12, Ending.LAST))
        await stage.at_ms(30)
        if early:
            assert await stage.kv(2) is None
        await stage.until_noted("released", 2)
        assert len(stage.shown(1)) < 12
        await stage.until_noted("released", 1)

    stage = play("md1", scene, memory_tokens=ROOM_FOR_ONE)
    assert [event["req"] for event in stage.events(Kind.SEQUENCE_ADMITTED)] == [1]
    published = stage.events(Kind.CACHE_PUBLISHED)
    assert {event["req"]: event["blocks"] for event in published} == {1: 2, 2: 2}
    stage.nothing_is_left()


def test_for_kv_that_will_not_come_the_cache_makes_no_room() -> None:
    async def scene(stage: Stage) -> None:
        stage.prepare(1, blocks=60)
        await stage.kv(1)
        await stage.until_noted("released", 1)
        stage.prepare(2, blocks=80)
        await stage.until_noted("released", 2)
        stage.prompts[3] = stage.prompts[1]
        stage.prepare(3)
        await stage.until_noted("released", 3)

    stage = play("md1", scene, memory_tokens=60 * BLOCK + 12)
    kept = [m.what for m in stage.post.to("rt1") if isinstance(m, Note) and m.what != "released"]
    assert kept == ["matched", "unkept", "matched"]
    assert [event["blocks"] for event in stage.events(Kind.CACHE_MATCHED)] == [0, 0, 60]
    stage.nothing_is_left()


@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize("relay", ["", "r1"])
def test_without_the_first_token_of_a_dead_p_nobody_waits(relay: str, loaded: bool) -> None:
    async def scene(stage: Stage) -> None:
        stage.prepare(1)
        stage.post.say("p1", FirstToken(1, stage.answer(1)[0], ""))
        await stage.kv(1)
        stage.prepare(2, relay=relay)
        await stage.kv(2)
        await stage.at_ms(30)
        stage.post.say("rt1", Lost("p1"))
        await stage.until_noted("released", 2)
        await stage.until_noted("released", 1)

    stage = play("md1", scene, first=Who.PREFILL, memory_tokens=0 if loaded else ROOM_FOR_ONE)
    if relay:
        assert stage.post.to("r1")[-1] == Refused(2, "prefill-lost")
    else:
        assert Failure(2, "prefill-lost") in stage.post.to("c1")
    assert stage.shown(1) == list(enumerate(stage.answer(1)))[1:]
    stage.nothing_is_left()
