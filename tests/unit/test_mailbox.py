"""Mailboxes on loopback: the end of a watched peer is noticed, and nothing waits for the dead."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable

import pytest
import zmq

from testbed.contract.agent import Peer
from testbed.contract.role import Role
from testbed_agents.clock import new_loop
from testbed_agents.control.mailbox import Departed, Mailbox
from testbed_agents.control.message import Failed
from testbed_agents.control.plane import Back, Seek
from tests.fakes.kv_pair import free_ports


def between(
    scene: Callable[[Mailbox, Mailbox], Awaitable[None]], queue: int = 1_000, life: int = 0
) -> None:
    """Plays a scene between the mailboxes of ``rt1`` and ``p1``, which is in its ``life``."""
    port = free_ports(2)
    peers = [
        Peer(name=name, role=role, address="127.0.0.1", control_port=port + at, data_port=1)
        for at, (name, role) in enumerate((("rt1", Role.ROUTER), ("p1", Role.PREFILL)))
    ]

    async def play() -> None:
        with (
            Mailbox("rt1", "127.0.0.1", port, peers[1:], queue=queue) as router,
            Mailbox("p1", "127.0.0.1", port + 1, peers[:1], incarnation=life) as prefill,
        ):
            async with asyncio.timeout(20):
                await scene(router, prefill)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(play())


def test_a_peer_that_ends_departs_behind_its_last_word() -> None:
    async def scene(router: Mailbox, prefill: Mailbox) -> None:
        router.watch("p1")
        router.send("p1", Failed(1, "hello"))
        assert await prefill.receive() == ("rt1", Failed(1, "hello"))
        prefill.send("rt1", Failed(2, "farewell"))
        assert await router.receive() == ("p1", Failed(2, "farewell"))
        prefill.close()
        assert await router.receive() == ("p1", Departed())

    between(scene)


def test_to_a_dropped_peer_nothing_is_sent() -> None:
    async def scene(router: Mailbox, prefill: Mailbox) -> None:
        router.watch("p1")
        router.send("p1", Failed(1, "first"))
        assert await prefill.receive() == ("rt1", Failed(1, "first"))
        router.send("p1", Failed(2, "still waits"))
        router.drop("p1")
        router.drop("p1")
        router.send("p1", Failed(3, "never"))
        router.watch("p1")
        prefill.send("rt1", Failed(4, "heard all the same"))
        assert await router.receive() == ("p1", Failed(4, "heard all the same"))

    between(scene)


def test_who_is_not_watched_departs_unnoticed() -> None:
    async def scene(router: Mailbox, prefill: Mailbox) -> None:
        router.send("p1", Failed(1, "hello"))
        assert await prefill.receive() == ("rt1", Failed(1, "hello"))
        prefill.close()
        waiting = asyncio.create_task(router.receive())
        done, _ = await asyncio.wait({waiting}, timeout=0.3)
        waiting.cancel()
        assert not done

    between(scene)


def test_a_peer_that_takes_nothing_is_lost_and_nobody_waits_for_it() -> None:
    async def scene(router: Mailbox, prefill: Mailbox) -> None:
        prefill.close()  # what is for it waits here
        for number in range(20):
            router.send("p1", Failed(number, "x"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert await router.receive() == ("p1", Departed())
        assert router.send("p1", Failed(21, "too late")) == 0

    between(scene, queue=8)


def test_a_new_life_begins_with_the_end_of_the_one_before() -> None:
    async def scene(router: Mailbox, prefill: Mailbox) -> None:
        prefill.send("rt1", Failed(1, "I am new here"))
        assert await router.receive() == ("p1", Departed())
        assert await router.receive() == ("p1", Failed(1, "I am new here"))
        prefill.send("rt1", Failed(2, "still"))
        assert await router.receive() == ("p1", Failed(2, "still"))

    between(scene, life=1)


def test_who_was_lost_is_sought_and_told_when_it_is_back() -> None:
    async def scene(router: Mailbox, prefill: Mailbox) -> None:
        router.watch("p1")
        router.send("p1", Failed(1, "hello"))
        assert await prefill.receive() == ("rt1", Failed(1, "hello"))
        router.drop("p1")
        router.seek("p1", Seek())
        assert await prefill.receive() == ("rt1", Seek())
        prefill.renew("rt1")
        prefill.send("rt1", Back())
        assert await router.receive() == ("p1", Back())
        prefill.close()
        assert await router.receive() == ("p1", Departed())  # it is watched again

    between(scene)


def test_without_descriptors_messages_wait_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(router: Mailbox, prefill: Mailbox) -> None:
        left = [2]
        connect = router.connect

        def refused(name: str, beat: bool = False) -> None:
            if left[0]:
                left[0] -= 1
                raise zmq.ZMQError(errno.EMFILE)
            connect(name, beat)

        monkeypatch.setattr(router, "connect", refused)
        for number in range(3):
            router.send("p1", Failed(number, "x"))
            await asyncio.sleep(0)
        assert [await prefill.receive() for _ in range(3)] == [
            ("rt1", Failed(number, "x")) for number in range(3)
        ]

    between(scene)
