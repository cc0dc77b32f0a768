"""Who was lost comes back and has forgotten everything; what is too much is refused by name."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from testbed.contract.defect import Defect
from testbed.contract.event import Kind
from testbed.contract.handoff import Occupancy
from testbed.contract.serving import Admission
from testbed_agents.control.mailbox import Departed
from testbed_agents.control.message import Message
from testbed_agents.control.plane import Assign, Back, Found, HeldUp, Lost, Matched, Note, Seek
from testbed_agents.handoff.message import Cancel, Ending, Evicted, Failure
from tests.fakes import decode_stage, prefill_stage
from tests.fakes.decode_stage import BLOCK
from tests.fakes.jump_loop import until_idle
from tests.unit.test_router_agent import Desk, played

pytestmark = pytest.mark.unit


def gone() -> Message:
    return cast("Message", Departed())


# --- router -----------------------------------------------------------------------------


def test_who_was_lost_is_sought_and_chosen_again_when_it_is_back() -> None:
    async def scene(desk: Desk) -> None:
        desk.say("p1", gone())
        await until_idle()
        assert desk.to("p1")[-1] == Seek()
        desk.say("p1", Note(0, "served", 0))  # of before: not heard
        desk.say("p1", Back())
        desk.say("p1", Back())
        await until_idle()
        told = [to for to, message in desk.sent if message == Found("p1")]
        assert sorted(told) == ["c1", "md1", "md2", "p2", "r1", "r2"]
        for job in range(8):
            desk.ask(job)
        await until_idle()
        assert {name for job in range(8) for name in desk.of(job, Assign)} == {"p1"}

    played(scene)


def test_who_is_lost_again_before_it_is_back_is_sought_again() -> None:
    async def scene(desk: Desk) -> None:
        desk.say("md1", gone())
        desk.say("md1", gone())
        await until_idle()
        assert desk.to("md1").count(Seek()) == 2
        assert [m for to, m in desk.sent if to == "c1"].count(Lost("md1")) == 1

    played(scene)


def test_other_ways_to_it_are_tried_ever_less_often() -> None:
    async def scene(desk: Desk) -> None:
        desk.say("md1", gone())
        for seconds, times in ((1, 1), (2, 2), (4, 3), (8, 4), (20, 5), (32, 6)):
            await asyncio.sleep(seconds)
            assert desk.to("md1").count(Seek()) == times
        desk.say("md1", Back())
        await asyncio.sleep(100)
        assert desk.to("md1").count(Seek()) == 6

    played(scene)


def test_without_recovery_it_stays_away_for_good() -> None:
    async def scene(desk: Desk) -> None:
        desk.say("p1", gone())
        await until_idle()
        assert Seek() not in desk.to("p1")

    played(scene, defects=(Defect.PAIR_RECOVERY,))


def test_without_identity_nobody_learns_that_it_is_gone() -> None:
    async def scene(desk: Desk) -> None:
        desk.say("p1", gone())
        await until_idle()
        assert desk.sent == []

    played(scene, defects=(Defect.PEER_IDENTITY,))


@pytest.mark.parametrize("on", [True, False])
def test_a_full_router_refuses_at_once_by_name(on: bool) -> None:
    async def scene(desk: Desk) -> None:
        for job in range(4):
            desk.ask(job)
        await until_idle()
        refused = [m.req for m in desk.to("c1") if isinstance(m, Failure)]
        assert refused == ([2, 3] if on else [])
        assert all(m.reason == "router-full" for m in desk.to("c1") if isinstance(m, Failure))
        desk.say("c1", Cancel(0))
        for name in ("p1", "p2"):
            desk.say(name, Note(0, "served", 0))
        for name in ("md1", "md2"):
            desk.say(name, Note(0, "released", 0))
        desk.ask(9)
        await until_idle()
        assert len(desk.of(9, Assign)) == 1  # there is room again

    defects = () if on else (Defect.ADMISSION_CONTROL,)
    played(scene, admission=Admission(router_requests=2), defects=defects)


@pytest.mark.parametrize("on", [True, False])
def test_a_client_that_gives_up_is_heard_by_all_who_work_for_it(on: bool) -> None:
    async def scene(desk: Desk) -> None:
        desk.ask(1)
        await until_idle()
        desk.say("c1", Cancel(1))
        await until_idle()
        assert len(desk.of(1, Cancel)) == (2 if on else 0)

    played(scene, defects=() if on else (Defect.CLIENT_CANCEL,))


# --- P ----------------------------------------------------------------------------------


def test_p_forgets_everything_and_says_that_it_is_back() -> None:
    async def scene(stage: prefill_stage.Stage) -> None:
        for req in (1, 2, 3):
            stage.assign(req, segment=req, blocks=8)
            stage.matched(req)
        await stage.after_ms(12)
        stage.post.say("rt1", Lost("md1"))
        await stage.after_ms(1)
        stage.post.say("rt1", Seek())
        await stage.after_ms(1)
        assert Back() in stage.post.to("rt1")
        assert all(line.under_way == 0 for line in stage.lines.values())
        assert not stage.lines["md1"].closed
        stage.assign(4)
        stage.matched(4)
        await stage.after_ms(200)

    stage = prefill_stage.play(scene)
    assert stage.lines["md1"].sent == stage.lines["r1"].sent == [4]
    assert sorted(stage.notes("served")) == [1, 2, 3, 4]
    stage.nothing_is_left()


def test_p_stops_at_once_though_a_match_never_comes() -> None:
    async def scene(stage: prefill_stage.Stage) -> None:
        stage.assign(1)
        await stage.after_ms(50)

    stage = prefill_stage.play(scene)
    (closed,) = stage.events(Kind.CACHE_CLOSED)
    assert int(str(closed["t"])) < 100_000_000
    stage.nothing_is_left()


def test_p_sends_again_to_a_receiver_that_is_back() -> None:
    async def scene(stage: prefill_stage.Stage) -> None:
        stage.post.say("rt1", Lost("md1"))
        await stage.after_ms(1)
        stage.post.say("rt1", Found("md1"))
        stage.assign(1)
        stage.matched(1)
        await stage.after_ms(200)

    assert prefill_stage.play(scene).lines["md1"].sent == [1]


@pytest.mark.parametrize("on", [True, False])
def test_a_full_p_refuses_at_once_by_name(on: bool) -> None:
    async def scene(stage: prefill_stage.Stage) -> None:
        for req in range(1, 6):
            stage.assign(req, segment=req, blocks=8)
        await stage.after_ms(1)
        for req in range(1, 6):
            stage.matched(req)
        await stage.after_ms(500)

    stage = prefill_stage.play(
        scene, admission=Admission(prefill_requests=3),
        defects=() if on else (Defect.ADMISSION_CONTROL,),
    )  # fmt: skip
    refused = [Failure(req, "prefill-full") for req in (4, 5)] if on else []
    for name in ("md1", "r1"):
        assert [m for m in stage.post.to(name) if isinstance(m, Failure)] == refused
    assert sorted(stage.notes("served")) == [1, 2, 3, 4, 5]
    assert stage.lines["md1"].sent == ([1, 2, 3] if on else [1, 2, 3, 4, 5])
    stage.nothing_is_left()


def test_cancelled_a_hundred_times_within_transfers_nothing_leaks() -> None:
    async def scene(stage: prefill_stage.Stage) -> None:
        for req in range(1, 101):
            stage.assign(req, segment=req % 5, blocks=1 + req % 4)
            stage.matched(req)
            await stage.after_ms(11 + req % 17)
            stage.post.say("rt1", Cancel(req))
            await stage.after_ms(1)
        await stage.after_ms(100)

    stage = prefill_stage.play(scene, cache_blocks=6)
    assert sorted(stage.notes("served")) == list(range(1, 101))
    assert all(line.under_way == 0 for line in stage.lines.values())
    stage.nothing_is_left()


# --- MD and RLD -------------------------------------------------------------------------


def test_md_forgets_everything_wherever_it_is() -> None:
    async def scene(stage: decode_stage.Stage) -> None:
        stage.prepare(1)
        stage.prepare(2)
        stage.prepare(3, relay="r1")
        await stage.kv(1)
        await stage.post.until(lambda: len(stage.shown(1)) == 3)
        stage.post.say("rt1", Seek())
        await stage.until_noted("released", 1, 2, 3)
        await stage.post.until(lambda: Back() in stage.post.to("rt1"))
        stage.prepare(4)
        await stage.kv(4)
        await stage.until_noted("released", 4)

    stage = decode_stage.play("md1", scene)
    assert stage.shown(4) == list(enumerate(stage.answer(4)))
    stage.nothing_is_left()


@pytest.mark.parametrize("on", [True, False])
def test_a_full_md_refuses_at_once_by_name(on: bool) -> None:
    async def scene(stage: decode_stage.Stage) -> None:
        for req in (1, 2, 3):
            stage.prepare(req)
        await stage.at_ms(1)
        await stage.kv(1)
        await stage.kv(2)
        if not on:
            await stage.kv(3)
        await stage.until_noted("released", 1, 2, 3)

    stage = decode_stage.play(
        "md1", scene, admission=Admission(decode_requests=2),
        defects=() if on else (Defect.ADMISSION_CONTROL,),
    )  # fmt: skip
    refused = [m for m in stage.post.to("c1") if isinstance(m, Failure)]
    assert refused == ([Failure(3, "decode-full")] if on else [])
    wanted = {m.req: m.blocks for m in stage.post.to("p1") if isinstance(m, Matched)}
    assert wanted == {1: 0, 2: 0, 3: 2 if on else 0}  # P sends it nothing
    stage.nothing_is_left()


def test_rld_forgets_everything_wherever_it_is() -> None:
    async def scene(stage: decode_stage.Stage) -> None:
        stage.relay(1)
        stage.relay(2)
        await stage.kv(1)
        await stage.post.until(lambda: len(stage.shown(1)) == 3)
        stage.post.say("rt1", Seek())
        await stage.until_noted("relayed", 1, 2)
        await stage.post.until(lambda: Back() in stage.post.to("rt1"))

    stage = decode_stage.play("r1", scene)
    ends = {end["req"]: end["cause"] for end in stage.events(Kind.RELAY_END)}
    assert ends == {1: "cancelled", 2: "cancelled"}


def test_word_that_no_kv_comes_may_be_ahead_of_the_request() -> None:
    async def scene(stage: decode_stage.Stage) -> None:
        stage.post.say("p1", Failure(1, "prefill-full"))
        stage.relay(1)
        await stage.until_noted("relayed", 1)

    stage = decode_stage.play("r1", scene)
    assert Evicted(1, 0, Ending.CANCELLED) in stage.post.to("md1")


@pytest.mark.parametrize(("held", "on", "tokens"), [(0, True, 4), (1, True, 8), (1, False, 4),
                                                    (5, True, 8)])  # fmt: skip
def test_rld_stays_up_to_twice_as_far_while_the_wan_stalls(
    held: int, on: bool, tokens: int
) -> None:
    async def scene(stage: decode_stage.Stage) -> None:
        stage.relay(1)
        for _ in range(held):
            stage.post.say("p1", HeldUp(1))
        await stage.kv(1)
        await stage.until_noted("relayed", 1)

    stage = decode_stage.play(
        "r1", scene, occupancy=Occupancy(most_tokens=4, least_tokens=4),
        defects=() if on else (Defect.RELAY_STAY,),
    )  # fmt: skip
    (end,) = stage.events(Kind.RELAY_END)
    assert (end["tokens"], end["cause"]) == (tokens, "cap")
    assert len(stage.events(Kind.RELAY_STAYS)) == (held > 0 and on)


@pytest.mark.parametrize("node", ["md1", "r1"])
def test_cancelled_a_hundred_times_a_decode_instance_keeps_nothing(node: str) -> None:
    async def scene(stage: decode_stage.Stage) -> None:
        note = "released" if node == "md1" else "relayed"
        for req in range(1, 101):
            if node == "md1":
                stage.prepare(req, blocks=1 + req % 3)
            else:
                stage.relay(req, blocks=1 + req % 3)
            await until_idle()
            if req % 3:
                await stage.kv(req)
            await stage.at_ms(req * 40 + req % 13)
            stage.post.say("rt1", Cancel(req))
            if not req % 3 and node == "md1":
                stage.post.say("p1", Failure(req, "cancelled"))  # P's word that no KV comes
            await stage.until_noted(note, req)

    # play raises where a lock, a reservation or device memory is still held
    stage = decode_stage.play(node, scene, memory_tokens=20 * BLOCK)
    assert len(stage.shown(1)) < 12
