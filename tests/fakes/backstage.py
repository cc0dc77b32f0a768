"""What surrounds one agent on a stage: its post, its time and its log are the test's."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from typing import cast

from testbed.contract.agent import AgentConfig
from testbed.contract.event import EventLog, Kind
from testbed.contract.progress import Mark
from testbed_agents.control.mailbox import Mailbox
from testbed_agents.control.message import Message, encode
from testbed_agents.control.plane import Note
from testbed_agents.runtime import Runtime
from testbed_agents.trouble import Trouble
from tests.fakes.jump_loop import JumpClock


class Post:
    """A mailbox: what was sent, and what the test says."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sent: list[tuple[str, Message]] = []
        self.dropped: set[str] = set()
        self._inbox: asyncio.Queue[tuple[str, Message]] = asyncio.Queue()
        self._news = asyncio.Event()

    def connect(self, name: str, beat: bool = False) -> None:
        """Nothing to open."""

    def watch(self, name: str) -> None:
        """Nothing to watch: the test says who departs."""

    def drop(self, name: str) -> None:
        self.dropped.add(name)

    def restore(self, name: str) -> None:
        self.dropped.discard(name)

    def renew(self, name: str) -> None:
        self.restore(name)

    def seek(self, name: str, message: Message) -> None:
        self.restore(name)
        self.send(name, message)

    def send(self, name: str, message: Message) -> int:
        if name in self.dropped:
            return 0
        self.sent.append((name, message))
        self._news.set()
        return len(encode(self.name, message))

    async def receive(self) -> tuple[str, Message]:
        return await self._inbox.get()

    def say(self, sender: str, message: Message) -> None:
        """A peer sends this."""
        self._inbox.put_nowait((sender, message))

    def to(self, name: str) -> list[Message]:
        """Everything that ``name`` was sent."""
        return [message for to, message in self.sent if to == name]

    async def until(self, true: Callable[[], bool]) -> None:
        """Waits for what was sent to make it true."""
        while not true():
            self._news.clear()
            await self._news.wait()


class NoMark(Mark):
    """Progress that nobody watches."""

    def __init__(self) -> None:
        """No file."""

    def step(self, virtual_ns: int) -> None:
        """Nothing to write."""

    def touch(self, virtual_ns: int) -> None:
        """Nothing to write."""


class Backstage:
    """The surroundings of the agent that ``post`` belongs to, on a ``JumpLoop``."""

    def __init__(self, post: Post) -> None:
        self.post = post
        self.clock = JumpClock()
        self.stop = asyncio.Event()
        self._stream = io.StringIO()
        self._log = EventLog(self._stream, post.name, self.clock)

    def runtime(self, config: AgentConfig) -> Runtime:
        """What the agent is given."""
        mailbox = cast("Mailbox", self.post)
        return Runtime(
            config, self.clock, self._log, mailbox, NoMark(), self.stop, lambda: None,
            Trouble(config, self.clock, self._log),
        )  # fmt: skip

    def events(self, kind: Kind | None = None) -> list[dict[str, object]]:
        """What the agent has written, of one kind or all of it."""
        self._log.flush()
        lines = [json.loads(line) for line in self._stream.getvalue().splitlines()]
        return [line for line in lines if kind is None or line["kind"] == kind.value]

    def notes(self, what: str) -> list[int]:
        """The requests of which the router was told this, in order."""
        return [m.req for m in self.post.to("rt1") if isinstance(m, Note) and m.what == what]

    def noted(self, what: str, *reqs: int) -> bool:
        """Whether the router was told this of all of them."""
        return {*self.notes(what)} >= {*reqs}

    async def until_noted(self, what: str, *reqs: int) -> None:
        """Waits until the router was told this of all of them."""
        await self.post.until(lambda: self.noted(what, *reqs))

    def nothing_is_left(self) -> None:
        """The cache was closed, and nobody held anything of it."""
        (closed,) = self.events(Kind.CACHE_CLOSED)
        assert (closed["under_way"], closed["locks"], closed["reservations"]) == (0, 0, 0)
