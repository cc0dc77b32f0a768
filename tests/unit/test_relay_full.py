"""An RLD that is full holds nobody up: MD takes an answer over that it has not begun."""

from __future__ import annotations

import pytest

from testbed.contract.event import Kind
from testbed_agents.control.plane import Matched, Note
from testbed_agents.handoff.message import Ending, Evicted, Refused, Takeover
from tests.fakes.decode_stage import BLOCK, Stage, play

pytestmark = pytest.mark.unit


def test_an_answer_that_waits_for_room_is_left_to_md_at_once() -> None:
    async def scene(stage: Stage) -> None:
        for req in (1, 2):
            stage.relay(req)
            await stage.kv(req)
        await stage.post.until(lambda: len(stage.shown(1)) == 2)
        stage.post.say("md1", Takeover(2, 4))
        await stage.post.until(lambda: Note(2, "relayed", 0) in stage.post.to("rt1"))
        assert len(stage.shown(1)) < 12  # the one with room goes on
        await stage.post.until(lambda: Note(1, "relayed", 12) in stage.post.to("rt1"))

    stage = play("r1", scene, memory_tokens=3 * BLOCK)
    assert stage.shown(2) == []
    assert Evicted(2, 0, Ending.CANCELLED) in stage.post.to("md1")
    assert stage.shown(1) == list(enumerate(stage.answer(1)))
    assert [event["req"] for event in stage.events(Kind.SEQUENCE_ADMITTED)] == [1]


def test_an_md_that_is_ready_does_not_wait_for_kv_that_rld_lacks() -> None:
    async def scene(stage: Stage) -> None:
        stage.relay(1)
        stage.post.say("md1", Takeover(1, 3))
        await stage.post.until(lambda: Note(1, "relayed", 0) in stage.post.to("rt1"))
        assert "the request has ended" in str(await stage.kv(1))

    stage = play("r1", scene)
    assert stage.shown(1) == []
    assert stage.post.to("md1") == stage.post.to("c1") == [Evicted(1, 0, Ending.CANCELLED)]


def test_to_an_md_that_is_given_up_nothing_is_promised() -> None:
    async def scene(stage: Stage) -> None:
        stage.relay(1)
        await stage.kv(1)
        await stage.post.until(lambda: len(stage.shown(1)) == 2)
        stage.post.say("md1", Refused(1, "decode-lost"))
        stage.post.say("md1", Takeover(1, 4))  # it was only silent for too long
        await stage.post.until(lambda: Note(1, "relayed", 12) in stage.post.to("rt1"))

    stage = play("r1", scene)
    assert stage.shown(1) == list(enumerate(stage.answer(1)))


def test_for_kv_that_will_not_come_the_cache_makes_no_room() -> None:
    async def scene(stage: Stage) -> None:
        stage.relay(1, blocks=2)
        await stage.kv(1)
        await stage.post.until(lambda: Note(1, "relayed", 12) in stage.post.to("rt1"))
        stage.relay(2, blocks=3)
        await stage.post.until(lambda: Note(2, "relayed", 0) in stage.post.to("rt1"))

    stage = play("r1", scene, memory_tokens=2 * BLOCK + 12, relay_cache=4)
    assert stage.post.to("p1") == [Matched(1, 0), Matched(2, 3)]
    assert Note(2, "unkept", 0) in stage.post.to("rt1")
    assert [event["evicted"] for event in stage.events(Kind.CACHE_RESERVED)] == [0, 0]


def test_a_match_is_told_as_it_was_before_room_was_made() -> None:
    async def scene(stage: Stage) -> None:
        for req in (1, 2):
            stage.relay(req)
            await stage.kv(req)
            await stage.post.until(lambda req=req: Note(req, "relayed", 12) in stage.post.to("rt1"))  # type: ignore[misc]

    stage = play("r1", scene, relay_cache=2)
    assert [event["size"] for event in stage.events(Kind.CACHE_MATCHED)] == [0, 2 * BLOCK * 1_000]
    assert [event["evicted"] for event in stage.events(Kind.CACHE_RESERVED)] == [0, 2]
