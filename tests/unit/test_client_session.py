"""The client of the serving plane: attempts, bounded; each position seen once, from whoever."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from testbed.contract.agent import Peer, Request, Span
from testbed.contract.ailment import Leave
from testbed.contract.attempt import attempt_id
from testbed.contract.role import Role
from testbed_agents.client.session import Asked
from testbed_agents.control.mailbox import Departed
from testbed_agents.control.message import Message
from testbed_agents.control.plane import NO_SESSION, Ask, Note, Orphaned, Settle, Settled
from testbed_agents.handoff.message import Cancel, Emission, Failure, Resend
from tests.fakes.backstage import Backstage, Post
from tests.fakes.jump_loop import JumpLoop, until_idle
from tests.fakes.plane_run import plane_plan

ASKED = Request(
    id=5, at_ns=0, input_tokens=128, hit_tokens=0, output_tokens=3, blocks=1, wire_bytes=1,
    prefill="p1", decode="md1", prompt=(Span(segment=1, tokens=128),),
)  # fmt: skip
AGAIN = attempt_id(5, 1)
Event = dict[str, object]


class Client(Post):
    """The post of ``c1``, whose router may go."""

    def asks(self) -> list[int]:
        return [message.req for message in self.to("rt1") if isinstance(message, Ask)]


Scene = Callable[[Client, Asked], Awaitable[None]]


def played(scene: Scene) -> tuple[Client, list[Event]]:
    """What the client sent, and its events."""
    plan = plane_plan()
    peers = tuple(
        Peer(name=one.node, role=one.role, address="x", control_port=1, data_port=1)
        for one in plan.agents
        if one.role is not Role.CLIENT
    )
    config = plan.agents[0].model_copy(update={"peers": peers})

    async def run() -> tuple[Client, list[Event]]:
        post = Client("c1")
        stage = Backstage(post)
        asked = Asked(stage.runtime(config))
        asked.connect()
        listening = asyncio.create_task(asked.listen())
        await scene(post, asked)
        listening.cancel()
        return post, stage.events()

    with asyncio.Runner(loop_factory=JumpLoop) as runner:
        return runner.run(run())


async def hear(post: Client, *messages: tuple[str, Message | Departed]) -> None:
    for sender, message in messages:
        post.say(sender, cast("Message", message))
    await until_idle()


def emission(job: int, position: int, *tokens: int, last: bool = False) -> Emission:
    return Emission(job, 0, 0, position, tokens, last)


def of(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event["kind"] == kind]


@pytest.mark.parametrize(("session", "told"), [(None, NO_SESSION), (0, 1), (7, 8)])
def test_the_router_is_told_which_session_if_any(session: int | None, told: int) -> None:
    async def scene(_: Client, asked: Asked) -> None:
        asked.submit(ASKED.model_copy(update={"session": session}))

    post, _ = played(scene)
    assert [message.session for message in post.to("rt1") if isinstance(message, Ask)] == [told]


def test_another_attempt_shows_only_what_was_missing() -> None:
    async def scene(post: Client, asked: Asked) -> None:
        ended = asked.submit(ASKED)
        await hear(post, ("md1", emission(5, 0, 7, 8)), ("rt1", Failure(5, "decode-lost")))
        assert post.asks() == [5, AGAIN]
        await hear(post, ("md1", emission(5, 2, 99, last=True)))  # nobody's answer any more
        await hear(post, ("md2", emission(AGAIN, 0, 7, 8, 9, last=True)))
        assert ended.is_set()

    post, events = played(scene)
    tokens = [(event["pos"], event["token"], event["source"]) for event in of(events, "token")]
    assert tokens == [(0, 7, "md1"), (1, 8, "md1"), (2, 9, "md2")]
    assert of(events, "request.done")[0]["tokens"] == [7, 8, 9]
    assert [(event["attempt"], event["reason"]) for event in of(events, "request.retried")] == [
        (1, "decode-lost")
    ]
    assert Note(AGAIN, "ended", 0) in post.to("rt1")


def test_attempts_that_disagree_give_no_answer() -> None:
    async def scene(post: Client, asked: Asked) -> None:
        asked.submit(ASKED)
        await hear(post, ("md1", emission(5, 0, 7)), ("rt1", Failure(5, "decode-lost")))
        await hear(post, ("md2", emission(AGAIN, 0, 6)))

    _, events = played(scene)
    assert of(events, "request.done") == []
    assert len(of(events, "request.failed")) == 1


def test_attempts_come_to_an_end() -> None:
    async def scene(post: Client, asked: Asked) -> None:
        ended = asked.submit(ASKED)
        for number in range(3):
            await hear(post, ("rt1", Failure(attempt_id(5, number), "prefill-lost")))
        assert ended.is_set()

    post, events = played(scene)
    assert post.asks() == [attempt_id(5, number) for number in range(3)]
    assert [event["reason"] for event in of(events, "request.failed")] == ["prefill-lost"]
    assert Cancel(attempt_id(5, 2)) in post.to("rt1")


def test_the_first_cause_is_reported_when_there_is_no_other_way() -> None:
    async def scene(post: Client, asked: Asked) -> None:
        asked.submit(ASKED)
        await hear(post, ("rt1", Failure(5, "prefill-lost")))
        await hear(post, ("rt1", Failure(AGAIN, "not-routed: no prefill instance")))

    _, events = played(scene)
    assert [event["reason"] for event in of(events, "request.failed")] == ["prefill-lost"]


def test_main_is_asked_for_what_a_lost_relay_left_out() -> None:
    async def scene(post: Client, asked: Asked) -> None:
        asked.submit(ASKED)
        await hear(post, ("r1", emission(5, 0, 7)), ("rt1", Orphaned(5, "md2")))

    post, _ = played(scene)
    assert post.to("md2") == [Resend(5, 1)]


def test_without_a_router_what_is_under_way_goes_on_and_nothing_new_is_asked() -> None:
    async def scene(post: Client, asked: Asked) -> None:
        ended = asked.submit(ASKED)
        await hear(post, ("rt1", Departed()))
        other = asked.submit(ASKED.model_copy(update={"id": 6}))
        assert other.is_set()
        await hear(post, ("md1", emission(5, 0, 7, 8, 9, last=True)))
        assert ended.is_set()
        await asked.settle()

    _, events = played(scene)
    assert [event["reason"] for event in of(events, "request.failed")] == ["router-lost"]


def test_it_ends_when_nobody_works_for_it() -> None:
    async def scene(post: Client, asked: Asked) -> None:
        settling = asyncio.create_task(asked.settle())
        await hear(post)
        assert post.to("rt1") == [Settle()]
        assert not settling.done()
        await hear(post, ("rt1", Settled()))
        assert settling.done()

    played(scene)


@pytest.mark.parametrize("clean", [True, False])
def test_a_user_who_goes_is_told_of_at_once_or_only_in_the_end(clean: bool) -> None:
    told: list[Message] = []

    async def scene(post: Client, asked: Asked) -> None:
        ended = asked.submit(ASKED)
        assert not asked.leave(6, clean), "another client's"
        assert asked.leave(AGAIN, clean)
        assert ended.is_set()
        assert not asked.leave(5, clean), "it has ended already"
        await hear(post, ("md1", emission(5, 0, 7)), ("md1", Failure(5, "late")))
        told.extend(post.to("rt1"))
        settling = asyncio.create_task(asked.settle())
        await until_idle()
        post.say("rt1", Settled())
        await settling

    post, events = played(scene)
    (failed,) = of(events, "request.failed")
    assert (failed["req"], failed["reason"]) == (5, "client-left")
    assert not of(events, "token")
    assert [type(one) for one in told] == ([Ask, Cancel] if clean else [Ask])
    assert [type(one) for one in post.to("rt1")] == [Ask, Cancel, Settle]


def test_a_user_may_go_behind_a_token() -> None:
    async def scene(post: Client, asked: Asked) -> None:
        asked._leaving.begin(Leave(clean=True, share=1, seed=1, tokens=2), lambda _: None)
        ended = asked.submit(ASKED)
        await hear(post, ("md1", emission(5, 0, 7)))
        assert not ended.is_set()
        await hear(post, ("md1", emission(5, 1, 8, 9, last=True)))
        assert ended.is_set()

    post, events = played(scene)
    assert [event["pos"] for event in of(events, "token")] == [0, 1]
    assert not of(events, "request.done")
    assert [type(one) for one in post.to("rt1")] == [Ask, Cancel]
