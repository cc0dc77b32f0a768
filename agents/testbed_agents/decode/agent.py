"""The main decode instance (MD): verified KV in, tokens out.

A sequence may decode only when its announcement has arrived over control and its
blocks have arrived, been verified and been restored. Each decode step takes the profile's time on
the clock and runs the real model for the whole batch (continuous batching).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field
from functools import partial

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.errors import AgentError, ProtocolError
from testbed_agents.control.mailbox import Departed
from testbed_agents.control.message import Announce, Failed, Tokens
from testbed_agents.decode.server import DecodeServer
from testbed_agents.hardware import decode_ns
from testbed_agents.model.kv import Kv
from testbed_agents.model.load import load_model, load_prompts
from testbed_agents.model.protocol import Choice, Step
from testbed_agents.runtime import Runtime, until_stopped
from testbed_agents.transport import IncomingTransfer, KvReceiver


@dataclass(slots=True)
class Sequence:
    """One request that decodes: its KV, the token to feed next, what it has answered."""

    announce: Announce
    kv: Kv
    feed: int
    answered: int = 0


@dataclass(slots=True)
class Expected:
    """An announcement that may be waited for."""

    announce: Announce | None = None
    arrived: asyncio.Event = field(default_factory=asyncio.Event)


class DecodeAgent:
    """State of one MD."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        config = runtime.config
        self._ratio = config.shape.ratio
        self._model = load_model(config.model)
        self._model.watch(runtime.layer_progress())
        self._prompts = load_prompts(config.model, config.seed)
        document = self._prompts.base_document(config.prompt_tokens // self._ratio)
        self._base = self._model.prefill(document)
        runtime.progress()
        self._expected: dict[int, Expected] = {}
        self._ended: set[int] = set()
        self._active: list[Sequence] = []
        self._work = asyncio.Event()
        self._receiver = KvReceiver(config, runtime.clock, runtime.events)
        runtime.trouble.receivers.append(self._receiver)

    async def run(self) -> None:
        """Serves until the lab says stop."""
        for peer in self._runtime.config.peers:
            if peer.role is Role.CLIENT:
                self._runtime.mailbox.connect(peer.name)
        self._receiver.bind()
        await self._runtime.barrier()
        try:
            await until_stopped(
                self._runtime.stop,
                self._listen(),
                self._receiver.serve(self._arrived),
                self._decode(),
            )
        finally:
            await self._receiver.close()

    async def _listen(self) -> None:
        while True:
            sender, message = await self._runtime.mailbox.receive()
            if isinstance(message, Departed):
                continue  # it takes nothing, and is sent nothing any more
            if not isinstance(message, Announce):
                raise AgentError("obey a control message", sender, type(message).__name__)
            expected = self._expected.setdefault(message.req, Expected())
            expected.announce = message
            expected.arrived.set()
            if message.blocks == 0:
                self._admit(message, self._base.prefix(message.hit_tokens // self._ratio))

    async def _arrived(self, transfer: IncomingTransfer) -> None:
        """Applies verified blocks; the acknowledgement leaves when this returns."""
        expected = self._expected.setdefault(transfer.request, Expected())
        try:
            async with asyncio.timeout(self._runtime.patience_s):
                await expected.arrived.wait()
        except TimeoutError as error:
            raise self._refusal(transfer, "not announced in time") from error
        announce = expected.announce
        if announce is None or transfer.request in self._ended:
            raise self._refusal(transfer, "the request has ended or was never announced")
        if len(transfer.blocks) != announce.blocks:
            raise self._refusal(
                transfer, f"{len(transfer.blocks)} blocks, announced were {announce.blocks}"
            )
        tail = self._model.restore(transfer.blocks)
        hit, length = (n // self._ratio for n in (announce.hit_tokens, announce.input_tokens))
        if hit + tail.length != length:
            raise self._refusal(transfer, f"{tail.length} rows, the prompt lacks {length - hit}")
        self._admit(announce, self._base.prefix(hit).join(tail))

    def _admit(self, announce: Announce, kv: Kv) -> None:
        """Starts decoding: the last prompt token is fed again to get the first output token."""
        hit, length = (n // self._ratio for n in (announce.hit_tokens, announce.input_tokens))
        last = self._prompts.prompt(announce.req, hit, length)[-1]
        self._ended.add(announce.req)
        del self._expected[announce.req]
        self._active.append(Sequence(announce, kv.prefix(length - 1), last))
        self._runtime.events.emit(Kind.DECODE_START, req=announce.req, batch=len(self._active))
        self._work.set()

    async def _decode(self) -> None:
        hardware = self._runtime.config.hardware
        while True:
            if not self._active:
                self._work.clear()
                await self._work.wait()
            batch = self._active[: hardware.max_batch]
            context = sum(one.announce.input_tokens + one.answered for one in batch)
            choices = await self._runtime.clock.during(
                decode_ns(hardware, len(batch), context), partial(self._step, batch)
            )
            self._runtime.progress()
            self._deliver(batch, [choice.token for choice in choices])

    def _step(self, batch: list[Sequence]) -> SequenceOf[Choice]:
        return self._model.decode([Step(one.kv, (one.feed,), one.announce.req) for one in batch])

    def _deliver(self, batch: list[Sequence], tokens: list[int]) -> None:
        """Streams the step's tokens, one message a client, and retires finished sequences."""
        messages: dict[str, Tokens] = {}
        for one, token in zip(batch, tokens, strict=True):
            message = messages.setdefault(one.announce.client, Tokens([], [], [], []))
            last = one.answered + 1 == one.announce.output_tokens
            message.reqs.append(one.announce.req)
            message.positions.append(one.answered)
            message.tokens.append(token)
            message.last.append(int(last))
            one.answered += 1
            one.feed = token
            if last:
                self._runtime.events.emit(
                    Kind.DECODE_END, req=one.announce.req, tokens=one.answered
                )
        self._active = [one for one in self._active if one.answered < one.announce.output_tokens]
        for client, message in messages.items():
            self._runtime.mailbox.send(client, message)

    def _refusal(self, transfer: IncomingTransfer, cause: str) -> ProtocolError:
        expected = self._expected.get(transfer.request)
        if expected is not None and expected.announce is not None:
            self._runtime.mailbox.send(
                expected.announce.client, Failed(transfer.request, f"kv-refused: {cause}")
            )
        return ProtocolError("apply KV", f"request {transfer.request}", cause)


async def decode_main(runtime: Runtime) -> None:
    """Entry point of a decode agent."""
    serving = runtime.config.serving
    if serving is None:
        await DecodeAgent(runtime).run()
    else:
        await DecodeServer(runtime, serving).run()
