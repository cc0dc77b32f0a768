"""One decode instance on a stage: it runs whole; its peers, its KV and its time are the test's.

::

    Post (control messages, both ways) ─┐
    Inbox (verified KV)                ─┼─▶ DecodeServer or RelayServer with the real model
    Outbox (RLD's increments)          ─┘
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from testbed.contract.agent import AgentConfig, Hardware, ModelConfig, Peer, Shape, Tcp
from testbed.contract.agent import Window as Phases
from testbed.contract.defect import Defect
from testbed.contract.handoff import HandoffConfig, HandoffMode, Occupancy
from testbed.contract.pool import Pool
from testbed.contract.role import Role
from testbed.contract.router import Direct, RouterConfig
from testbed.contract.serving import Admission, Caches, DeviceLimits, FirstToken, Reserve, Serving
from testbed.errors import TestbedError
from testbed_agents.control.plane import Prepare, Relay
from testbed_agents.decode.server import DecodeServer
from testbed_agents.handoff.message import Emission
from testbed_agents.model.load import load_model, load_prompts
from testbed_agents.model.protocol import Step
from testbed_agents.relay.server import RelayServer
from testbed_agents.transport import (
    Fault,
    IncomingTransfer,
    KvSender,
    OutgoingTransfer,
    Receipt,
    TransferError,
)
from tests.fakes.backstage import Backstage, Post
from tests.fakes.jump_loop import JumpLoop

BLOCK = 128
RATIO = 16
"""A block is 8 real tokens."""
SHAPE = Shape(block_tokens=BLOCK, ratio=RATIO, bytes_per_token=1_000, fixed_bytes=0)
STEP_NS = 10_000_000
ANY, LONG = Admission(), Occupancy()
NODES = {
    "rt1": Role.ROUTER, "p1": Role.PREFILL, "r1": Role.RELAY, "md1": Role.DECODE,
    "c1": Role.CLIENT,
}  # fmt: skip


class Inbox:
    """Verified KV, as the test brings it."""

    def __init__(self) -> None:
        self._handler: Callable[[IncomingTransfer], Awaitable[None]] | None = None
        self.serving = asyncio.Event()
        self.aborted: list[int] = []

    def abort(self, request: int) -> None:
        self.aborted.append(request)

    def bind(self) -> None:
        """Nothing to bind."""

    async def serve(self, handler: Callable[[IncomingTransfer], Awaitable[None]]) -> None:
        self._handler = handler
        self.serving.set()
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Nothing to close."""

    async def bring(
        self, req: int, blocks: tuple[memoryview, ...], epoch: int = 0
    ) -> TestbedError | None:
        """One transfer; returns why it was refused."""
        assert self._handler is not None
        try:
            await self._handler(IncomingTransfer(req, epoch, blocks, 1_000, "p1", 0))
        except TestbedError as refused:
            return refused
        return None


class Outbox:
    """RLD's way to MD; ``broken`` connections are lost in the middle, ``stuck`` ones never move."""

    def __init__(self, broken: bool = False) -> None:
        self.sent: list[OutgoingTransfer] = []
        self.broken = broken
        self.stuck = False
        self.cut: list[int] = []

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    def reopen(self) -> None:
        """Nothing to open."""

    async def send(self, transfer: OutgoingTransfer) -> Receipt:
        if self.broken:
            raise TransferError(Fault.CONNECTION_LOST, f"request {transfer.request}", "cut")
        try:
            if self.stuck:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cut.append(transfer.request)
            raise
        self.sent.append(transfer)
        return Receipt(transfer.request, 0, transfer.wire_bytes, 0, 0)


class Stage(Backstage):
    """What a test holds."""

    def __init__(self, node: str = "", broken: bool = False) -> None:
        super().__init__(Post(node))
        self.inbox = Inbox()
        self.outbox = Outbox(broken)
        self.model = load_model(ModelConfig(name="nano"))
        self.prompts: dict[int, tuple[list[int], list[int]]] = {}

    def prepare(self, req: int, blocks: int = 2, most: int = 12, relay: str = "") -> None:
        """The router tells MD of a request; all its blocks are of a segment of its own."""
        spans = self._spans(req, blocks)
        self.post.say("rt1", Prepare(req, *spans, most, "p1", relay, "c1"))

    def relay(self, req: int, blocks: int = 2, most: int = 12, decode: str = "md1") -> None:
        """The router tells RLD of a request."""
        spans = self._spans(req, blocks)
        self.post.say("rt1", Relay(req, *spans, most, decode, "c1", "p1"))

    async def kv(self, req: int, held: int = 0) -> TestbedError | None:
        """P's transfer of all blocks behind the first ``held`` arrives."""
        rows = self.model.prefill(self.tokens(req))
        return await self.inbox.bring(req, rows.blocks(BLOCK // RATIO)[held:])

    def tokens(self, req: int) -> tuple[int, ...]:
        """The real prompt."""
        segments, lengths = self.prompts[req]
        spans = tuple((s, n // RATIO) for s, n in zip(segments, lengths, strict=True))
        return load_prompts(ModelConfig(name="nano"), 0).spans(spans)

    def answer(self, req: int, most: int = 12) -> tuple[int, ...]:
        """What one uninterrupted engine answers."""
        prompt = self.tokens(req)
        kv, out = self.model.prefill(prompt[:-1]), [prompt[-1]]
        while len(out) <= most:
            out.append(self.model.decode([Step(kv, (out[-1],), req)])[0].token)
        return tuple(out[1:])

    def shown(self, req: int) -> list[tuple[int, int]]:
        """(position, token) of everything that the client was sent, in order."""
        return [
            (message.position + offset, token)
            for message in self.post.to("c1")
            if isinstance(message, Emission) and message.req == req
            for offset, token in enumerate(message.tokens)
        ]

    async def at_ms(self, ms: float) -> None:
        """Lets the run go on up to a time."""
        await self.clock.until(int(ms * 1_000_000))

    def _spans(self, req: int, blocks: int) -> tuple[list[int], list[int]]:
        return self.prompts.setdefault(req, ([req + 1_000], [blocks * BLOCK]))


def answer_to(req: int, blocks: int = 2) -> tuple[int, ...]:
    """What one uninterrupted engine answers to the prompt that a stage makes for ``req``."""
    stage = Stage()
    stage.prepare(req, blocks)
    return stage.answer(req)


Scene = Callable[[Stage], Awaitable[None]]


def play(
    node: str, scene: Scene, *, mode: HandoffMode = HandoffMode.CATCH_UP, memory_tokens: int = 0,
    reserve: Reserve = Reserve.KNOWN, first: FirstToken = FirstToken.DECODE, stop_at: int = -1,
    relay_cache: int = 0, broken: bool = False, admission: Admission = ANY,
    defects: tuple[Defect, ...] = (), occupancy: Occupancy = LONG,
) -> Stage:  # fmt: skip
    """Runs ``md1`` or ``r1`` through a scene and to its end; whatever leaks there is raised."""
    memory = DeviceLimits(
        relay_bytes=memory_tokens * 1_000, decode_bytes=memory_tokens * 1_000, reserve=reserve,
        headroom_tokens=1,
    )  # fmt: skip
    serving = Serving(
        caches=Caches(
            prefill_bytes=0, decode_bytes=100 * BLOCK * 1_000,
            relay_bytes=relay_cache * BLOCK * 1_000,
        ),
        router=RouterConfig(pipeline=Direct()), admission=admission,
        handoff=HandoffConfig(mode=mode, occupancy=occupancy),
        first_token=first, memory=memory, chunk_tokens=1_024, prefill_batch=1,
        match_timeout_ns=10**9, rtt_ns=20_000_000,
    )  # fmt: skip
    stop = (stop_at,) if stop_at >= 0 else ()
    config = stage_config(node, serving, stop).model_copy(update={"defects": defects})

    async def run() -> Stage:
        stage = Stage(node, broken)
        runtime = stage.runtime(config)
        if NODES[node] is Role.DECODE:
            server = DecodeServer(runtime, serving, stage.inbox).run()
        else:
            senders = {"md1": cast("KvSender", stage.outbox)}
            server = RelayServer(runtime, serving, stage.inbox, senders).run()

        async def act() -> None:
            await stage.inbox.serving.wait()
            await scene(stage)
            stage.stop.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(server)
            group.create_task(act())
        return stage

    with asyncio.Runner(loop_factory=JumpLoop) as runner:
        return runner.run(run())


def stage_config(node: str, serving: Serving, stop: tuple[int, ...] = ()) -> AgentConfig:
    return AgentConfig(
        node=node, role=NODES[node], seed=0, barrier_ns=0,
        window=Phases(warm_up_ns=0, measure_ns=1, drain_ns=1), address="127.0.0.1",
        control_port=1, data_port=2,
        peers=tuple(
            Peer(name=name, role=role, address="127.0.0.1", control_port=1, data_port=2)
            for name, role in NODES.items()
            if name != node
        ),
        model=ModelConfig(name="nano", stop=stop), shape=SHAPE,
        hardware=Hardware(
            name="even", source="made up", prefill_base_s=0, prefill_token_s=0,
            prefill_attention_s=0, decode_base_s=STEP_NS / 1e9, decode_sequence_s=0,
            decode_context_s=0, max_batch=8, copy_base_s=0.001,
        ),
        pool=Pool(
            size=1, queue=1, acquire_timeout_ns=10**9, transfer_timeout_ns=10**9,
            chunk_bytes=65_536, source_port=20_000,
        ),
        tcp=Tcp(send_buffer=65_536, receive_buffer=65_536, receive_low_water=8_192),
        prompt_tokens=BLOCK, events="-", serving=serving,
    )  # fmt: skip
