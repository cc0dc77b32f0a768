"""An RLD that is full holds nobody up: MD takes an answer over that it has not begun."""

from __future__ import annotations

import pytest

from testbed.contract.event import Kind
from testbed_agents.control.plane import Note
from testbed_agents.handoff.message import Ending, Evicted, Takeover
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
