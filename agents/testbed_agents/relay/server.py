"""RLD of the serving plane: full KV over the fast link in, eager tokens out.

::

    Relay (router), KV (P) ─▶ RelayPart ─▶ every token to the client and, as an id, to MD
                    Takeover (MD) ─▶ go on to the promised position, then forget the request
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.contract.serving import Serving
from testbed.errors import AgentError, ProtocolError
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
from testbed_agents.serving.prompt import Prompt, read_prompt
from testbed_agents.transport import IncomingTransfer, KvReceiver


@dataclass(slots=True)
class Guest:
    """One request at RLD; ``part`` and ``kv`` once its KV is here."""

    relay: Relay
    prompt: Prompt
    part: RelayPart | None = None
    kv: Kv | None = None
    early: list[Message] = field(default_factory=list)
    """What MD said before the KV was here."""


class RelayServer:
    """State of one RLD."""

    def __init__(self, runtime: Runtime, serving: Serving) -> None:
        self._runtime = runtime
        self._serving = serving
        config = runtime.config
        self._model = load_model(config.model)
        self._model.watch(runtime.layer_progress())
        self._prompts = load_prompts(config.model, config.seed)
        self._guests: dict[int, Guest] = {}
        self._known: dict[int, asyncio.Event] = {}
        self._work = asyncio.Event()
        self._router = next(peer.name for peer in config.peers if peer.role is Role.ROUTER)
        self._receiver = KvReceiver(config, runtime.clock, runtime.events)

    async def run(self) -> None:
        """Serves until the lab says stop."""
        for peer in self._runtime.config.peers:
            if peer.role is not Role.PREFILL:
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
        self._known.setdefault(relay.req, asyncio.Event()).set()

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
            case Cancel() | Failure():
                self._give_up(guest)

    def _give_up(self, guest: Guest) -> None:
        """Its KV never came: MD has every position."""
        evicted = Evicted(guest.relay.req, 0, Ending.CANCELLED)
        for name in (guest.relay.decode, guest.relay.client):
            if name:
                self._runtime.mailbox.send(name, evicted)
        self._forget(guest, 0, Ending.CANCELLED.value)

    async def _arrived(self, transfer: IncomingTransfer) -> None:
        """Applies verified blocks; the acknowledgement leaves when this returns."""
        known = self._known.setdefault(transfer.request, asyncio.Event())
        try:
            async with asyncio.timeout(self._runtime.config.pool.transfer_timeout_ns / 1e9):
                await known.wait()
        except TimeoutError as error:
            raise _refusal(transfer, "not announced in time") from error
        guest = self._guests.get(transfer.request)
        if guest is None or guest.part is not None:
            raise _refusal(transfer, "the request has ended, or its KV is here")
        if len(transfer.blocks) != guest.prompt.blocks:
            raise _refusal(
                transfer, f"{len(transfer.blocks)} blocks, the prompt has {guest.prompt.blocks}"
            )
        rows = self._model.restore(transfer.blocks)
        guest.kv = rows.prefix(rows.length - 1)
        guest.part = RelayPart(
            transfer.request, guest.prompt.tokens[-1], guest.relay.output_tokens,
            frozenset(self._serving.stop), self._serving.handoff.occupancy,
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
                case SendIncrement():
                    raise AgentError(
                        "hand over", f"request {guest.relay.req}",
                        "incremental KV is not there yet", "choose another handoff mode",
                    )  # fmt: skip
                case Release() if guest.part is not None:
                    cause = guest.part.cause
                    self._forget(guest, guest.part.emitted, cause.value if cause else "")
        self._work.set()

    def _forget(self, guest: Guest, tokens: int, cause: str) -> None:
        req = guest.relay.req
        self._runtime.events.emit(Kind.RELAY_END, req=req, tokens=tokens, cause=cause)
        del self._guests[req]
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


def _kv(guest: Guest) -> Kv:
    if guest.kv is None:
        raise AgentError("decode", f"request {guest.relay.req}", "its KV is not here")
    return guest.kv


def _refusal(transfer: IncomingTransfer, cause: str) -> ProtocolError:
    return ProtocolError("apply KV", f"request {transfer.request}", cause)


async def relay_main(runtime: Runtime) -> None:
    """Entry point of a relay-decode agent."""
    if runtime.config.serving is None:
        raise AgentError("start RLD", runtime.config.node, "its config has no serving part")
    await RelayServer(runtime, runtime.config.serving).run()
