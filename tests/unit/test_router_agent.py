"""The router: who departs is told to all and chosen no more; its requests go another way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from testbed.contract.agent import Peer
from testbed.contract.attempt import attempt_id
from testbed.contract.defect import Defect
from testbed.contract.role import Role
from testbed.contract.serving import Admission
from testbed_agents.control.mailbox import Departed
from testbed_agents.control.message import Message
from testbed_agents.control.plane import (
    NO_SESSION,
    Ask,
    Assign,
    Lost,
    Note,
    Orphaned,
    Prepare,
    Relay,
    Settle,
    Settled,
)
from testbed_agents.handoff.message import Cancel, Failure
from testbed_agents.router.agent import RouterAgent
from tests.fakes.backstage import Backstage, Post
from tests.fakes.jump_loop import JumpLoop, until_idle
from tests.fakes.plane_run import AGENTS, BLOCK_TOKENS, plane_plan

AGAIN = attempt_id(0, 1)
ANY = Admission()


class Desk(Post):
    """The router's post."""

    def ask(self, job: int, blocks: int = 4, session: int = 0) -> None:
        self.say("c1", Ask(job, [9], [blocks * BLOCK_TOKENS], 8, session, "c1"))

    def of(self, job: int, kind: type[Message]) -> list[str]:
        """Who was sent a message of a kind about a job."""
        return [to for to, m in self.sent if isinstance(m, kind) and getattr(m, "req", job) == job]


Scene = Callable[[Desk], Awaitable[None]]


def played(
    scene: Scene, pipeline: dict[str, object] | None = None, *, admission: Admission = ANY,
    defects: tuple[Defect, ...] = (), **rules: dict[str, object],
) -> Desk:  # fmt: skip
    """Plays a scene with a router of two sites, two P, two RLD and two MD."""
    plan = plane_plan()
    peers = tuple(
        Peer(name=name, role=role, address="x", control_port=1, data_port=1)
        for name, role in AGENTS
        if role is not Role.ROUTER
    )
    serving = plan.agents[0].serving
    assert serving is not None
    router = serving.router.model_validate(
        {**serving.router.model_dump(), "pipeline": pipeline or {"kind": "direct"}, **rules}
    )
    serving = serving.model_copy(
        update={
            "router": router,
            "admission": admission,
            "site_of": tuple((n, "b" if n.startswith("md") else "a") for n, _ in AGENTS),
            "most_sequences": tuple((n, 8) for n in ("r1", "r2", "md1", "md2")),
            "leg_payload_bps": (("a-b", 10**9),),
        }
    )
    config = plan.agents[1].model_copy(
        update={
            "node": "rt1",
            "role": Role.ROUTER,
            "peers": peers,
            "serving": serving,
            "defects": defects,
        }
    )

    async def run() -> Desk:
        desk = Desk("rt1")
        stage = Backstage(desk)
        routing = asyncio.create_task(RouterAgent(stage.runtime(config), serving).run())
        await until_idle()
        await scene(desk)
        stage.stop.set()
        await routing
        return desk

    with asyncio.Runner(loop_factory=JumpLoop) as runner:
        return runner.run(run())


def test_requests_without_a_session_are_spread_where_sessions_stay() -> None:
    sticky: dict[str, object] = {"kind": "session-sticky", "seed": 1}

    def mains(session: int) -> set[str]:
        async def scene(desk: Desk) -> None:
            for job in range(6):
                desk.ask(job, session=session)
            await until_idle()

        desk = played(scene, prefill=sticky, decode=sticky)
        return {name for job in range(6) for name in desk.of(job, Prepare)}

    assert mains(NO_SESSION) == {"md1", "md2"}
    assert len(mains(5)) == 1


RELAYED: dict[str, object] = {"kind": "hit-threshold", "threshold": 1.0}


def test_who_departs_is_told_to_all_and_chosen_no_more() -> None:
    async def scene(desk: Desk) -> None:
        desk.say("p1", cast("Message", Departed()))
        await until_idle()
        told = {to for to, message in desk.sent if message == Lost("p1")}
        assert told == {"p2", "r1", "r2", "md1", "md2", "c1"}
        for job in range(6):
            desk.ask(job)
        await until_idle()
        assert [desk.of(job, Assign) for job in range(6)] == [["p2"]] * 6

    played(scene)


def test_another_attempt_ends_the_one_before_and_takes_another_main() -> None:
    async def scene(desk: Desk) -> None:
        desk.ask(0)
        await until_idle()
        (first,) = desk.of(0, Prepare)
        desk.ask(AGAIN)
        await until_idle()
        assert set(desk.of(0, Cancel)) == {first, *desk.of(0, Assign)}
        (second,) = desk.of(AGAIN, Prepare)
        assert {first, second} == {"md1", "md2"}

    played(scene)


def test_the_only_main_is_tried_again() -> None:
    async def scene(desk: Desk) -> None:
        desk.say("md2", cast("Message", Departed()))
        desk.ask(0)
        desk.ask(AGAIN)
        await until_idle()
        assert desk.of(AGAIN, Prepare) == ["md1"]

    played(scene)


def test_without_any_main_relay_answers_alone_and_without_relay_nobody() -> None:
    async def scene(desk: Desk) -> None:
        for name in ("md1", "md2"):
            desk.say(name, cast("Message", Departed()))
        desk.ask(0)
        await until_idle()
        assert desk.of(0, Prepare) == []
        assert len(desk.of(0, Relay)) == len(desk.of(0, Assign)) == 1
        for name in ("r1", "r2"):
            desk.say(name, cast("Message", Departed()))
        desk.ask(1)
        await until_idle()
        assert desk.of(1, Failure) == ["c1"]
        assert desk.of(1, Assign) == []

    played(scene)


def test_of_a_lost_relay_the_client_learns_who_goes_on() -> None:
    async def scene(desk: Desk) -> None:
        desk.ask(0)
        await until_idle()
        (relay,), (main,) = desk.of(0, Relay), desk.of(0, Prepare)
        desk.say(relay, cast("Message", Departed()))
        await until_idle()
        assert desk.to("c1")[-1] == Orphaned(0, main)

    played(scene, RELAYED)


def test_of_a_lost_main_the_client_learns_when_relay_has_ended_too() -> None:
    async def scene(desk: Desk) -> None:
        desk.ask(0)
        await until_idle()
        (relay,), (main,) = desk.of(0, Relay), desk.of(0, Prepare)
        desk.say(main, cast("Message", Departed()))
        await until_idle()
        assert desk.of(0, Failure) == []
        desk.say(relay, Note(0, "relayed", 5))
        await until_idle()
        assert desk.to("c1")[-1] == Failure(0, "decode-lost")

    played(scene, RELAYED)


def test_where_main_and_then_relay_are_lost_nobody_is_asked_to_go_on() -> None:
    async def scene(desk: Desk) -> None:
        desk.ask(0)
        await until_idle()
        (relay,), (main,) = desk.of(0, Relay), desk.of(0, Prepare)
        desk.say(main, cast("Message", Departed()))
        desk.say(relay, cast("Message", Departed()))
        await until_idle()
        assert desk.to("c1")[-1] == Orphaned(0, "")

    played(scene, RELAYED)


def test_what_a_lost_client_still_asked_is_not_begun() -> None:
    async def scene(desk: Desk) -> None:
        desk.say("c1", cast("Message", Departed()))
        desk.ask(0)
        await until_idle()
        assert desk.of(0, Assign) == desk.of(0, Prepare) == []

    played(scene)


def test_a_client_that_departs_leaves_nobody_at_work() -> None:
    async def scene(desk: Desk) -> None:
        desk.ask(0)
        await until_idle()
        at_work = {*desk.of(0, Relay), *desk.of(0, Prepare), *desk.of(0, Assign)}
        assert len(at_work) == 3
        desk.say("c1", cast("Message", Departed()))
        await until_idle()
        assert set(desk.of(0, Cancel)) == at_work

    played(scene, RELAYED)


def test_a_client_is_settled_when_the_last_has_left_its_requests() -> None:
    async def scene(desk: Desk) -> None:
        desk.ask(0)
        desk.say("c1", Settle())
        await until_idle()
        (prefill,), (main,) = desk.of(0, Assign), desk.of(0, Prepare)
        words = [(prefill, "served"), (main, "released"), ("c1", "ended")]
        for name, what in words:
            assert Settled() not in desk.to("c1")
            desk.say(name, Note(0, what, 0))
            await until_idle()
        assert Settled() in desk.to("c1")

    played(scene)
