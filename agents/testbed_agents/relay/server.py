"""RLD of the serving plane: full KV over the fast link in, eager tokens out.

::

    Relay (router), KV (P) ─▶ RelayPart ─▶ every token to the client and, as an id, to MD
                    Takeover (MD) ─▶ go on to the promised position, then forget the request
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from testbed.contract.event import Kind
from testbed.contract.handoff import HandoffMode, Occupancy
from testbed.contract.role import Role
from testbed.contract.serving import Serving
from testbed.errors import AgentError, TestbedError
from testbed_agents.control.plane import Note, Relay
from testbed_agents.handoff.action import Actions, Feed, Release, Send, SendIncrement
from testbed_agents.handoff.message import (
    Cancel,
    Ending,
    Evicted,
    Failure,
    Message,
    Peer,
    Refused,
    Takeover,
)
from testbed_agents.handoff.relay import RelayPart
from testbed_agents.hardware import decode_ns
from testbed_agents.model.kv import Kv
from testbed_agents.model.load import load_model, load_prompts
from testbed_agents.model.protocol import Step
from testbed_agents.runtime import Runtime, until_stopped
from testbed_agents.serving.announced import Announced, refusal
from testbed_agents.serving.device import DeviceMemory, sequence_bytes
from testbed_agents.serving.prompt import Prompt, read_prompt
from testbed_agents.transport import (
    INCREMENT,
    IncomingTransfer,
    KvReceiver,
    KvSender,
    OutgoingTransfer,
    opened,
)


@dataclass(slots=True)
class Guest:
    """One request at RLD; ``kv`` once it has arrived, ``part`` once it can be decoded."""

    relay: Relay
    prompt: Prompt
    part: RelayPart | None = None
    kv: Kv | None = None
    early: list[Message] = field(default_factory=list)
    """What MD said before that."""


class RelayServer:
    """State of one RLD."""

    def __init__(self, runtime: Runtime, serving: Serving) -> None:
        self._runtime = runtime
        self._serving = serving
        config = runtime.config
        self._model = load_model(config.model)
        self._model.watch(runtime.layer_progress())
        self._prompts = load_prompts(config.model, config.seed)
        self._memory = DeviceMemory(runtime, self._begin)
        self._guests: dict[int, Guest] = {}
        self._announced = Announced(config.pool.transfer_timeout_ns)
        self._work = asyncio.Event()
        self._router = next(peer.name for peer in config.peers if peer.role is Role.ROUTER)
        self._receiver = KvReceiver(config, runtime.clock, runtime.events)
        self._senders = _senders(runtime, serving)
        self._increments: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Serves until the lab says stop."""
        for peer in self._runtime.config.peers:
            if peer.role is not Role.PREFILL:
                self._runtime.mailbox.connect(peer.name)
        self._receiver.bind()
        await self._runtime.barrier()
        async with asyncio.TaskGroup() as self._increments, opened(self._senders.values()):
            try:
                await until_stopped(
                    self._runtime.stop,
                    self._listen(),
                    self._receiver.serve(self._arrived),
                    self._memory.serve(),
                    self._decode(),
                )
            finally:
                await self._receiver.close()

    @property
    def _load(self) -> float:
        """Share of the batch in use, 0..1."""
        return min(1.0, len(self._guests) / self._runtime.config.hardware.max_batch)

    async def _listen(self) -> None:
        while True:
            sender, message = await self._runtime.mailbox.receive()
            match message:
                case Relay():
                    self._expect(message)
                case Takeover() | Refused() | Cancel() | Failure():
                    guest = self._guests.get(message.req)
                    if guest is not None:
                        self._hear(guest, message)
                case _:
                    raise AgentError("obey a control message", sender, type(message).__name__)

    def _expect(self, relay: Relay) -> None:
        shape = self._runtime.config.shape
        prompt = read_prompt(self._prompts, shape, relay.req, relay.segments, relay.lengths)
        self._guests[relay.req] = Guest(relay, prompt)
        self._announced.add(relay.req)
        if not self._memory.fits(self._size(self._guests[relay.req])):
            self._give_up(self._guests[relay.req], "kv-memory-too-small")

    def _hear(self, guest: Guest, message: Message) -> None:
        part = guest.part
        if part is None and not isinstance(message, Cancel | Failure):
            guest.early.append(message)
            return
        match message:
            case Takeover() if part is not None:
                self._act(guest, part.taken_over(message, self._load))
            case Refused(_, reason) if part is not None:
                self._act(guest, part.main_lost(reason))
            case Cancel() if part is not None:
                self._act(guest, part.cancelled())
            case Cancel():
                self._give_up(guest, "cancelled")
            case Failure(_, reason) if guest.kv is None:
                self._give_up(guest, reason)

    def _give_up(self, guest: Guest, reason: str) -> None:
        """Nothing was decoded: MD has every position; without MD there is no answer."""
        evicted = Evicted(guest.relay.req, 0, Ending.CANCELLED)
        for name in (guest.relay.decode, guest.relay.client):
            if name:
                self._runtime.mailbox.send(name, evicted)
        if not guest.relay.decode:
            self._runtime.mailbox.send(guest.relay.client, Failure(guest.relay.req, reason))
        self._forget(guest, 0, Ending.CANCELLED.value)

    async def _arrived(self, transfer: IncomingTransfer) -> None:
        """Applies verified blocks; the acknowledgement leaves when this returns."""
        await self._announced.wait(transfer)
        guest = self._guests.get(transfer.request)
        if guest is None or guest.kv is not None:
            raise refusal(transfer, "the request has ended, or its KV is here")
        if len(transfer.blocks) != guest.prompt.blocks:
            raise refusal(
                transfer, f"{len(transfer.blocks)} blocks, the prompt has {guest.prompt.blocks}"
            )
        rows = self._model.restore(transfer.blocks)
        guest.kv = rows.prefix(rows.length - 1)  # the last token is fed again
        shape = self._runtime.config.shape
        copied = sequence_bytes(shape, guest.prompt.input_tokens, 0)
        self._memory.submit(transfer.request, self._size(guest), copied)

    def _size(self, guest: Guest) -> int:
        return sequence_bytes(
            self._runtime.config.shape, guest.prompt.input_tokens, guest.relay.output_tokens
        )

    def _begin(self, req: int) -> None:
        """Its KV is on the device: the first eager token comes with the next step."""
        guest = self._guests[req]
        occupancy = self._serving.handoff.occupancy
        guest.part = RelayPart(
            guest.relay.req, guest.prompt.tokens[-1], guest.relay.output_tokens,
            frozenset(self._serving.stop),
            occupancy if guest.relay.decode else _whole(guest.relay.output_tokens),
            self._runtime.clock.now_ns(),
        )  # fmt: skip
        for message in guest.early:
            self._hear(guest, message)
        self._work.set()

    def _act(self, guest: Guest, actions: Actions) -> None:
        for action in actions:
            match action:
                case Send(Peer.CLIENT, message):
                    self._runtime.mailbox.send(guest.relay.client, message)
                case Send(Peer.MAIN, message) if guest.relay.decode:
                    self._runtime.mailbox.send(guest.relay.decode, message)
                case SendIncrement(rows) if self._increments is not None:
                    self._increments.create_task(self._increment(guest, rows))
                case Release() if guest.part is not None:
                    cause = guest.part.cause
                    self._forget(guest, guest.part.emitted, cause.value if cause else "")
        self._work.set()

    async def _increment(self, guest: Guest, rows: int) -> None:
        """The naive handoff: the rows of the output so far go to MD through the pool."""
        req, shape = guest.relay.req, self._runtime.config.shape
        begin = len(guest.prompt.tokens) - 1
        content = _kv(guest).part(begin, begin + rows).block_bytes(0, rows)
        size = rows * shape.bytes_per_token + shape.fixed_bytes
        try:
            await self._senders[guest.relay.decode].send(
                OutgoingTransfer(req, INCREMENT, (content,), size)
            )
        except TestbedError as error:
            reason = str(getattr(error, "reason", type(error).__name__))
            self._runtime.mailbox.send(guest.relay.decode, Failure(req, reason))
        if guest.part is not None:
            self._act(guest, guest.part.increment_done())

    def _forget(self, guest: Guest, tokens: int, cause: str) -> None:
        req = guest.relay.req
        self._runtime.events.emit(Kind.RELAY_END, req=req, tokens=tokens, cause=cause)
        del self._guests[req]
        self._memory.leave(req)
        self._runtime.mailbox.send(self._router, Note(req, "relayed", tokens))

    async def _decode(self) -> None:
        hardware = self._runtime.config.hardware
        while True:
            batch = self._plan(hardware.max_batch)
            if not batch:
                self._work.clear()
                await self._work.wait()
                continue
            context = sum(one.prompt.input_tokens + feed.position for one, _, feed in batch)
            await self._runtime.clock.spend(decode_ns(hardware, len(batch), context))
            choices = self._model.decode(
                [Step(_kv(one), feed.tokens, one.relay.req) for one, _, feed in batch]
            )
            self._runtime.progress()
            now_ns = self._runtime.clock.now_ns()
            for (one, part, _), choice in zip(batch, choices, strict=True):
                self._act(one, part.stepped(choice.token, self._load, now_ns))

    def _plan(self, most: int) -> list[tuple[Guest, RelayPart, Feed]]:
        batch: list[tuple[Guest, RelayPart, Feed]] = []
        for guest in self._guests.values():
            if len(batch) == most:
                break
            feed = guest.part.plan() if guest.part is not None else None
            if guest.part is not None and feed is not None:
                batch.append((guest, guest.part, feed))
        return batch


def _whole(tokens: int) -> Occupancy:
    """No bound: without MD an answer is RLD's to its end."""
    return Occupancy(most_tokens=tokens, least_tokens=tokens, hold_ns=1 << 62)


def _senders(runtime: Runtime, serving: Serving) -> dict[str, KvSender]:
    """To every MD where RLD hands KV over; else RLD sends none."""
    if serving.handoff.mode is not HandoffMode.INCREMENTAL_KV:
        return {}
    config = runtime.config
    return {
        peer.name: KvSender(config, peer, runtime.clock, runtime.events)
        for peer in config.peers
        if peer.role is Role.DECODE
    }


def _kv(guest: Guest) -> Kv:
    if guest.kv is None:
        raise AgentError("decode", f"request {guest.relay.req}", "its KV is not here")
    return guest.kv


async def relay_main(runtime: Runtime) -> None:
    """Entry point of a relay-decode agent."""
    if runtime.config.serving is None:
        raise AgentError("start RLD", runtime.config.node, "its config has no serving part")
    await RelayServer(runtime, runtime.config.serving).run()
