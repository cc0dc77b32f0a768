"""Mailboxes on loopback: the end of a watched peer is noticed, and nothing waits for the dead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from testbed.contract.agent import Peer
from testbed.contract.role import Role
from testbed_agents.clock import new_loop
from testbed_agents.control.mailbox import Departed, Mailbox
from testbed_agents.control.message import Failed
from tests.fakes.kv_pair import free_ports


def between(scene: Callable[[Mailbox, Mailbox], Awaitable[None]]) -> None:
    """Plays a scene between the mailboxes of ``rt1`` and ``p1``."""
    port = free_ports(2)
    peers = [
        Peer(name=name, role=role, address="127.0.0.1", control_port=port + at, data_port=1)
        for at, (name, role) in enumerate((("rt1", Role.ROUTER), ("p1", Role.PREFILL)))
    ]

    async def play() -> None:
        with (
            Mailbox("rt1", "127.0.0.1", port, peers[1:]) as router,
            Mailbox("p1", "127.0.0.1", port + 1, peers[:1]) as prefill,
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
