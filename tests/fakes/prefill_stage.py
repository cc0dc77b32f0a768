"""One P on a stage: it runs whole; its router, its receivers and its time are the test's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from testbed.contract.defect import Defect
from testbed.contract.router import Direct, RouterConfig
from testbed.contract.serving import Admission, Caches, Serving
from testbed_agents.control.plane import Assign, Matched
from testbed_agents.pool import AcquireError, Refusal
from testbed_agents.prefill.server import PrefillServer
from testbed_agents.transport import Fault, KvSender, OutgoingTransfer, Receipt, TransferError
from tests.fakes.backstage import Backstage, Post
from tests.fakes.decode_stage import BLOCK, stage_config
from tests.fakes.jump_loop import JumpClock, JumpLoop

PASS_NS = 10_000_000
ANY = Admission()


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

    def reopen(self) -> None:
        self.closed = False

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


class Stage(Backstage):
    """What a test holds."""

    def __init__(self) -> None:
        super().__init__(Post("p1"))
        self.lines = {name: Line(self.clock) for name in ("r1", "md1")}
        self.assigned: set[int] = set()

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


def play(
    scene: Callable[[Stage], Awaitable[None]], cache_blocks: int = 100,
    admission: Admission = ANY, defects: tuple[Defect, ...] = (),
) -> Stage:  # fmt: skip
    """Runs ``p1`` through a scene and to its end; whatever leaks there is raised."""
    serving = Serving(
        caches=Caches(prefill_bytes=cache_blocks * BLOCK * 1_000, decode_bytes=0),
        router=RouterConfig(pipeline=Direct()), chunk_tokens=1_024, prefill_batch=2,
        match_timeout_ns=10**9, rtt_ns=20_000_000, admission=admission,
    )  # fmt: skip
    config = stage_config("p1", serving)
    hardware = config.hardware.model_copy(update={"prefill_base_s": PASS_NS / 1e9})
    config = config.model_copy(update={"hardware": hardware, "defects": defects})

    async def run() -> Stage:
        stage = Stage()
        senders = {name: cast("KvSender", line) for name, line in stage.lines.items()}
        server = PrefillServer(stage.runtime(config), serving, senders)

        async def act() -> None:
            await scene(stage)
            stage.stop.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(server.run())
            group.create_task(act())
        return stage

    with asyncio.Runner(loop_factory=JumpLoop) as runner:
        return runner.run(run())
