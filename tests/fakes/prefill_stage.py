"""One P on a stage: it runs whole; its router, its receivers and its time are the test's."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import cast

from testbed.contract.event import EventLog, Kind
from testbed.contract.router import Direct, RouterConfig
from testbed.contract.serving import Caches, Serving
from testbed_agents.control.mailbox import Mailbox
from testbed_agents.control.plane import Assign, Matched
from testbed_agents.pool import AcquireError, Refusal
from testbed_agents.prefill.server import PrefillServer
from testbed_agents.runtime import Runtime
from testbed_agents.transport import Fault, KvSender, OutgoingTransfer, Receipt, TransferError
from tests.fakes.decode_stage import BLOCK, NoMark, Post, stage_config
from tests.fakes.jump_loop import JumpClock, JumpLoop

PASS_NS = 10_000_000


class Line:
    """P's way to one receiver: a transfer takes the time that the test gives it."""

    def __init__(self, clock: JumpClock) -> None:
        self.takes_ns = 20_000_000
        self.broken = False
        self.closed = False
        self.under_way = 0
        self.sent: list[int] = []
        self._clock = clock

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        self.closed = True

    async def send(self, transfer: OutgoingTransfer) -> Receipt:
        self.under_way += 1
        try:
            if self.closed:
                raise AcquireError(f"request {transfer.request}", Refusal.CLOSED)
            await self._clock.spend(self.takes_ns)
            if self.broken or self.closed:
                raise TransferError(Fault.CONNECTION_LOST, f"request {transfer.request}", "cut")
        finally:
            self.under_way -= 1
        self.sent.append(transfer.request)
        return Receipt(transfer.request, 0, transfer.wire_bytes, 0, self.takes_ns)


@dataclass
class Stage:
    """What a test holds."""

    post: Post
    lines: dict[str, Line]
    clock: JumpClock
    stream: io.StringIO
    log: EventLog
    assigned: set[int] = field(default_factory=set)

    def assign(self, req: int, blocks: int = 2, segment: int = 7, relay: str = "r1") -> None:
        """The router gives P a prompt."""
        self.assigned.add(req)
        self.post.say("rt1", Assign(req, [segment], [blocks * BLOCK], "md1", relay, "c1"))

    def matched(self, req: int, blocks: int = 0) -> None:
        """MD says what it holds of a prompt."""
        self.post.say("md1", Matched(req, blocks))

    async def after_ms(self, ms: float) -> None:
        """Lets the run go on for a while."""
        await self.clock.spend(int(ms * 1_000_000))

    def events(self, kind: Kind) -> list[dict[str, object]]:
        self.log.flush()
        lines = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [line for line in lines if line["kind"] == kind.value]


def play(scene: Callable[[Stage], Awaitable[None]], cache_blocks: int = 100) -> Stage:
    """Runs ``p1`` through a scene and to its end; whatever leaks there is raised."""
    serving = Serving(
        caches=Caches(prefill_bytes=cache_blocks * BLOCK * 1_000, decode_bytes=0),
        router=RouterConfig(pipeline=Direct()), chunk_tokens=1_024, prefill_batch=2,
        match_timeout_ns=10**9, rtt_ns=20_000_000,
    )  # fmt: skip
    config = stage_config("p1", serving)
    hardware = config.hardware.model_copy(update={"prefill_base_s": PASS_NS / 1e9})
    config = config.model_copy(update={"hardware": hardware})

    async def run() -> Stage:
        clock, stream, post, stop = JumpClock(), io.StringIO(), Post("p1"), asyncio.Event()
        log = EventLog(stream, "p1", clock)
        lines = {name: Line(clock) for name in ("r1", "md1")}
        stage = Stage(post, lines, clock, stream, log)
        runtime = Runtime(
            config, clock, log, cast("Mailbox", post), NoMark(), stop, lambda: None
        )  # fmt: skip
        senders = {name: cast("KvSender", line) for name, line in lines.items()}
        server = PrefillServer(runtime, serving, senders)

        async def act() -> None:
            await scene(stage)
            stop.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(server.run())
            group.create_task(act())
        return stage

    with asyncio.Runner(loop_factory=JumpLoop) as runner:
        return runner.run(run())
