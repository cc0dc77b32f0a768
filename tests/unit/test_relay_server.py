"""RLD as a whole: eager tokens, preemption, refusals, increments, its cache; nothing leaks.

``play`` raises where anything still holds a lock, a reservation or device memory at the end.
"""

from __future__ import annotations

import pytest

from testbed.contract.event import Kind
from testbed.contract.handoff import HandoffMode
from testbed.contract.serving import FirstToken as Who
from testbed_agents.control.message import encode
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
from tests.fakes.decode_stage import BLOCK, Stage, answer_to, play

pytestmark = pytest.mark.unit


def told(stage: Stage, req: int) -> list[tuple[int, int]]:
    """(position, token) of every id that MD was told."""
    return [
        (message.position + offset, token)
        for message in stage.post.to("md1")
        if isinstance(message, TokenIds) and message.req == req
        for offset, token in enumerate(message.tokens)
    ]


def test_md_is_told_every_token_and_takes_over_where_it_asked() -> None:
    async def scene(stage: Stage) -> None:
        stage.relay(1)
        await stage.kv(1)
        await stage.post.until(lambda: len(stage.shown(1)) == 3)
        stage.post.say("md1", Takeover(1, 6))
        await stage.until_noted("relayed", 1)

    stage = play("r1", scene)
    assert stage.shown(1) == told(stage, 1) == list(enumerate(stage.answer(1)))[:6]
    assert Evicted(1, 6, Ending.TAKEOVER) in stage.post.to("md1")
    (end,) = stage.events(Kind.RELAY_END)
    ids = [m for m in stage.post.to("md1") if isinstance(m, TokenIds)]
    assert (end["tokens"], end["ids"]) == (6, 6)
    assert end["size"] == sum(len(encode("r1", one)) for one in ids)


def test_its_load_leaves_out_what_is_still_at_p() -> None:
    async def scene(stage: Stage) -> None:
        for req in (1, 2, 3, 4):
            stage.relay(req)
        await stage.kv(1)
        await stage.post.until(lambda: len(stage.shown(1)) == 3)
        stage.post.say("md1", Takeover(1, 4))
        for req in (2, 3, 4):
            stage.post.say("c1", Cancel(req))
        await stage.until_noted("relayed", 1)

    stage = play("r1", scene)
    loads = {m.load_percent for m in stage.post.to("md1") if isinstance(m, TokenIds)}
    assert loads == {round(100 / 8)}


def test_where_memory_runs_out_the_newest_waits_and_computes_its_tokens_again() -> None:
    async def scene(stage: Stage) -> None:
        for req in (1, 2):
            stage.relay(req)
            await stage.kv(req)
        await stage.until_noted("relayed", 1, 2)

    stage = play("r1", scene, memory_tokens=4 * BLOCK + 10)
    (preempted,) = stage.events(Kind.SEQUENCE_PREEMPTED)
    assert (preempted["req"], preempted["tokens"]) == (2, 4)
    for req in (1, 2):
        assert stage.shown(req) == told(stage, req) == list(enumerate(stage.answer(req)))


def test_a_preempted_answer_is_handed_over_where_it_is() -> None:
    async def scene(stage: Stage) -> None:
        for req in (1, 2):
            stage.relay(req)
            await stage.kv(req)
        await stage.post.until(lambda: bool(stage.events(Kind.SEQUENCE_PREEMPTED)))
        stage.post.say("md1", Takeover(2, 9))
        await stage.until_noted("relayed", 1, 2)

    stage = play("r1", scene, memory_tokens=4 * BLOCK + 10)
    assert Evicted(2, 4, Ending.TAKEOVER) in stage.post.to("md1")
    assert stage.shown(2) == list(enumerate(stage.answer(2)))[:4]


@pytest.mark.parametrize("decode", ["md1", ""])
def test_an_rld_that_is_too_small_leaves_the_answer_to_md(decode: str) -> None:
    async def scene(stage: Stage) -> None:
        stage.relay(1, decode=decode)
        await stage.until_noted("relayed", 1)
        assert "the request has ended" in str(await stage.kv(1))

    stage = play("r1", scene, memory_tokens=BLOCK)
    evicted = Evicted(1, 0, Ending.CANCELLED)
    if decode:
        assert stage.post.to("md1") == [evicted]
        assert stage.post.to("c1") == [evicted]
    else:
        assert stage.post.to("c1") == [evicted, Failure(1, "kv-memory-too-small")]


def test_kv_that_lacks_blocks_is_refused_until_p_gives_up() -> None:
    async def scene(stage: Stage) -> None:
        stage.relay(1)
        assert "1 blocks, missing are 2" in str(await stage.kv(1, held=1))
        stage.post.say("p1", Failure(1, "refused"))
        await stage.until_noted("relayed", 1)

    assert play("r1", scene).shown(1) == []


def test_a_refusal_of_md_leaves_the_whole_answer_to_rld() -> None:
    async def scene(stage: Stage) -> None:
        stage.relay(1)
        stage.post.say("md1", Refused(1, "kv-memory-too-small"))
        await stage.kv(1)
        await stage.until_noted("relayed", 1)

    stage = play("r1", scene)
    assert stage.shown(1) == list(enumerate(stage.answer(1)))


def test_a_client_that_leaves_in_the_middle_ends_it() -> None:
    async def scene(stage: Stage) -> None:
        stage.relay(1)
        await stage.kv(1)
        await stage.post.until(lambda: len(stage.shown(1)) == 3)
        stage.post.say("rt1", Cancel(1))
        await stage.until_noted("relayed", 1)

    stage = play("r1", scene)
    assert len(stage.shown(1)) == 3
    assert stage.events(Kind.RELAY_END)[0]["cause"] == "cancelled"


def test_a_token_that_ends_the_answer_ends_it_here() -> None:
    async def scene(stage: Stage) -> None:
        stage.relay(1)
        await stage.kv(1)
        await stage.until_noted("relayed", 1)

    stage = play("r1", scene, stop_at=answer_to(1)[2])
    assert len(stage.shown(1)) == 3
    assert Evicted(1, 3, Ending.LAST) in stage.post.to("md1")


@pytest.mark.parametrize("broken", [False, True])
def test_an_increment_arrives_or_md_is_told_that_it_does_not(broken: bool) -> None:
    async def scene(stage: Stage) -> None:
        stage.relay(1)
        await stage.kv(1)
        await stage.post.until(lambda: len(stage.shown(1)) == 4)
        stage.post.say("md1", Takeover(1, 0, True))
        await stage.until_noted("relayed", 1)

    stage = play("r1", scene, mode=HandoffMode.INCREMENTAL_KV, broken=broken)
    (end,) = stage.events(Kind.RELAY_END)
    assert end["t"] == 52_000_000  # copied in, five steps, copied out
    answer = stage.answer(1)
    whole = stage.model.prefill((*stage.tokens(1), *answer[:3]))
    if broken:
        assert Failure(1, "connection-lost") in stage.post.to("md1")
    else:
        (sent,) = stage.outbox.sent
        restored = stage.model.restore(sent.blocks)
        expected = whole.part(15, 19).block_bytes(0, 4)
        assert restored.length == 4
        rows = restored.block_bytes(0, 4).cast("d")
        assert list(rows) == pytest.approx(list(expected.cast("d")))


def test_rows_that_are_to_be_sent_are_taken_before_anybody_else_needs_their_room() -> None:
    async def scene(stage: Stage) -> None:
        for req in (1, 2):
            stage.relay(req)
            await stage.kv(req)
        await stage.post.until(lambda: len(stage.shown(2)) == 3)
        stage.post.say("md1", Takeover(2, 0, True))
        await stage.until_noted("relayed", 1, 2)

    stage = play("r1", scene, mode=HandoffMode.INCREMENTAL_KV, memory_tokens=4 * BLOCK + 9)
    assert stage.events(Kind.SEQUENCE_PREEMPTED) == []
    (sent,) = stage.outbox.sent
    assert stage.model.restore(sent.blocks).length == 3


def test_a_preempted_answer_has_no_rows_to_send() -> None:
    async def scene(stage: Stage) -> None:
        for req in (1, 2):
            stage.relay(req)
            await stage.kv(req)
        await stage.post.until(lambda: bool(stage.events(Kind.SEQUENCE_PREEMPTED)))
        stage.post.say("md1", Takeover(2, 0, True))
        await stage.until_noted("relayed", 1, 2)

    stage = play("r1", scene, mode=HandoffMode.INCREMENTAL_KV, memory_tokens=4 * BLOCK + 10)
    assert Failure(2, "preempted") in stage.post.to("md1")
    assert stage.outbox.sent == []


def test_a_cache_of_its_own_spares_the_fast_link() -> None:
    async def scene(stage: Stage) -> None:
        stage.relay(1)
        await stage.kv(1)
        await stage.until_noted("relayed", 1)
        stage.prompts[2] = (list(stage.prompts[1][0]), [3 * BLOCK])
        stage.relay(2)
        await stage.at_ms(500)
        assert await stage.kv(2, held=2) is None
        stage.prompts[3] = stage.prompts[1]
        stage.relay(3)  # all of it is there: nothing comes
        await stage.until_noted("relayed", 2, 3)

    stage = play("r1", scene, relay_cache=8)
    assert stage.post.to("p1") == [Matched(1, 0), Matched(2, 2), Matched(3, 2)]
    assert stage.shown(2) == list(enumerate(stage.answer(2)))
    assert [e["blocks"] for e in stage.events(Kind.CACHE_PUBLISHED)] == [2, 1, 0]
    stage.nothing_is_left()


def test_blocks_that_were_not_verified_are_never_found() -> None:
    async def scene(stage: Stage) -> None:
        stage.relay(1)
        stage.prompts[2] = stage.prompts[1]
        stage.relay(2)
        assert await stage.kv(1, held=1) is not None
        stage.post.say("p1", Failure(1, "refused"))
        await stage.until_noted("relayed", 1)
        stage.prompts[3] = stage.prompts[1]
        stage.relay(3)
        await stage.at_ms(10)
        for req in (2, 3):
            stage.post.say("p1", Failure(req, "refused"))
        await stage.until_noted("relayed", 2, 3)

    stage = play("r1", scene, relay_cache=8)
    assert stage.post.to("p1") == [Matched(1, 0), Matched(2, 0), Matched(3, 0)]
    assert stage.events(Kind.CACHE_PUBLISHED) == []


@pytest.mark.parametrize("before", [True, False])
def test_behind_the_first_token_of_p_rld_goes_on_from_position_one(before: bool) -> None:
    async def scene(stage: Stage) -> None:
        first = FirstToken(1, answer_to(1)[0], "r1")
        if before:
            stage.post.say("p1", first)
        stage.relay(1)
        await stage.kv(1)
        await stage.at_ms(30)
        if not before:
            assert stage.shown(1) == []
            stage.post.say("p1", first)
        await stage.until_noted("relayed", 1)

    stage = play("r1", scene, first=Who.PREFILL)
    assert stage.shown(1) == told(stage, 1) == list(enumerate(stage.answer(1)))[1:]
    emissions = [m for m in stage.post.to("c1") if isinstance(m, Emission)]
    assert {(m.epoch, m.since) for m in emissions} == {(1, 1)}


def test_a_first_token_of_p_that_ends_the_answer_leaves_nothing_to_decode() -> None:
    async def scene(stage: Stage) -> None:
        stage.relay(1, most=1)
        stage.post.say("p1", FirstToken(1, answer_to(1)[0], "r1"))
        await stage.kv(1)
        await stage.until_noted("relayed", 1)

    stage = play("r1", scene, first=Who.PREFILL)
    assert stage.shown(1) == []
    assert Evicted(1, 1, Ending.LAST) in stage.post.to("md1")


@pytest.mark.parametrize(("lost", "shown"), [("p1", 0), ("c1", 0), ("md1", 12)])
def test_a_lost_peer_ends_what_depends_on_it(lost: str, shown: int) -> None:
    async def scene(stage: Stage) -> None:
        stage.relay(1)
        await stage.at_ms(1)
        stage.post.say("rt1", Lost(lost))
        if lost == "md1":  # it goes on alone, within its bounds
            await stage.kv(1)
        await stage.until_noted("relayed", 1)

    assert len(play("r1", scene).shown(1)) == shown


def test_without_the_first_token_of_a_dead_p_the_answer_is_left_to_md() -> None:
    async def scene(stage: Stage) -> None:
        stage.relay(1)
        await stage.kv(1)
        await stage.at_ms(30)
        stage.post.say("rt1", Lost("p1"))
        await stage.until_noted("relayed", 1)

    stage = play("r1", scene, first=Who.PREFILL)
    assert stage.post.to("md1") == [Evicted(1, 0, Ending.CANCELLED)]


def test_a_client_that_leaves_cuts_an_increment() -> None:
    async def scene(stage: Stage) -> None:
        stage.outbox.stuck = True
        stage.relay(1)
        await stage.kv(1)
        await stage.post.until(lambda: len(stage.shown(1)) == 4)
        stage.post.say("md1", Takeover(1, 0, True))
        await stage.at_ms(500)
        assert not stage.noted("relayed", 1)
        stage.post.say("rt1", Cancel(1))
        await stage.at_ms(501)
        assert stage.noted("relayed", 1)

    stage = play("r1", scene, mode=HandoffMode.INCREMENTAL_KV)
    assert stage.outbox.cut == [1]
    assert stage.outbox.sent == []
