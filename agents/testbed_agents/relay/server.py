"""RLD of the serving plane: full KV over the fast link in, eager tokens out.

::

    Relay (router) ─▶ match, Matched to P (with a cache of its own)
    KV (P) ─▶ device memory ─▶ RelayPart ─▶ every token to the client and, as an id, to MD
                    Takeover (MD) ─▶ go on to the promised position, then forget the request
"""

from __future__ import annotations

import asyncio

from testbed.contract.attempt import request_of
from testbed.contract.event import Kind
from testbed.contract.handoff import HandoffMode, Occupancy
from testbed.contract.role import Role
from testbed.contract.serving import FirstToken as Who
from testbed.contract.serving import Serving
from testbed.errors import AgentError, TestbedError
from testbed_agents.batching import limits_of
from testbed_agents.cache import RadixCache, Reservation
from testbed_agents.control.plane import Lost, Matched, Note, Relay
from testbed_agents.handoff.action import Actions, Feed, Release, Send, SendIncrement
from testbed_agents.handoff.message import (
    Cancel,
    Ending,
    Evicted,
    Failure,
    FirstToken,
    Message,
    Peer,
    Refused,
    Takeover,
    TokenIds,
)
from testbed_agents.handoff.relay import RelayPart
from testbed_agents.hardware import copy_ns, decode_ns
from testbed_agents.model.kv import Kv
from testbed_agents.model.load import load_model, load_prompts
from testbed_agents.model.protocol import Step
from testbed_agents.relay.guest import Guest
from testbed_agents.runtime import Runtime, until_stopped
from testbed_agents.serving.announced import Announced, refusal
from testbed_agents.serving.device import DeviceMemory
from testbed_agents.serving.inbox import KvInbox
from testbed_agents.serving.prompt import read_prompt
from testbed_agents.serving.record import close_cache, emit_matched, emit_published, emit_reserved
from testbed_agents.serving.rows import Piece, join, load_documents, pieces
from testbed_agents.transport import (
    INCREMENT,
    IncomingTransfer,
    KvReceiver,
    KvSender,
    OutgoingTransfer,
    opened,
)


class RelayServer:
    """State of one RLD."""

    def __init__(
        self, runtime: Runtime, serving: Serving, receiver: KvInbox | None = None,
        senders: dict[str, KvSender] | None = None,
    ) -> None:  # fmt: skip
        self._runtime = runtime
        self._serving = serving
        config = runtime.config
        self._model = load_model(config.model)
        self._model.watch(runtime.layer_progress())
        self._prompts = load_prompts(config.model, config.seed)
        shape, caches = config.shape, serving.caches
        self._block = shape.block_tokens // shape.ratio
        self._cached = caches.relay_bytes > 0
        self._cache: RadixCache[Piece] = RadixCache(
            caches.relay_bytes, shape.block_tokens * shape.bytes_per_token
        )
        if self._cached:
            load_documents(self._cache, self._model, self._prompts, shape, serving.documents)
        limits = limits_of(config.hardware, shape, serving.memory, serving.memory.relay_bytes)
        self._memory = DeviceMemory(runtime, limits, self._load, self._drop)
        self._prefilled = serving.first_token is Who.PREFILL
        self._guests: dict[int, Guest] = {}
        self._firsts: dict[int, int] = {}
        """First tokens of P that came before the request itself."""
        self._announced = Announced(config.pool.transfer_timeout_ns)
        self._work = asyncio.Event()
        self._router = next(peer.name for peer in config.peers if peer.role is Role.ROUTER)
        self._receiver = receiver or KvReceiver(config, runtime.clock, runtime.events)
        self._senders = _senders(runtime, serving) if senders is None else senders
        self._increments: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Serves until the lab says stop."""
        for peer in self._runtime.config.peers:
            if self._cached or peer.role is not Role.PREFILL:
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
        under_way = len(self._guests)
        for guest in self._guests.values():
            self._give_back(guest)
        self._memory.close()
        if self._cached:
            close_cache(self._runtime.events, self._cache, under_way)

    @property
    def _pressure(self) -> float:
        """Share of the batch in use, 0..1."""
        return min(1.0, len(self._guests) / self._runtime.config.hardware.max_batch)

    async def _listen(self) -> None:
        while True:
            sender, message = await self._runtime.mailbox.receive()
            match message:
                case Relay():
                    self._expect(message)
                case FirstToken() | Takeover() | Refused() | Cancel() | Failure():
                    guest = self._guests.get(message.req)
                    if guest is not None:
                        self._hear(guest, message)
                    elif isinstance(message, FirstToken) and message.req not in self._announced:
                        self._firsts[message.req] = message.token
                case Lost(name):
                    self._lose(name)
                case _:
                    raise AgentError("obey a control message", sender, type(message).__name__)

    def _expect(self, relay: Relay) -> None:
        config = self._runtime.config
        prompt = read_prompt(self._prompts, config.shape, relay.req, relay.segments, relay.lengths)
        match = self._cache.match(prompt.keys)
        room = self._cache.reserve(prompt.blocks - match.blocks)
        guest = Guest(relay, prompt, match, room, first=self._firsts.pop(relay.req, None))
        self._guests[relay.req] = guest
        self._announced.add(relay.req)
        fits = self._memory.fits(prompt.input_tokens, relay.output_tokens)
        if self._cached:
            missing = prompt.blocks - match.blocks
            emit_matched(self._runtime.events, self._cache, relay.req, match.blocks, prompt)
            emit_reserved(self._runtime.events, self._cache, relay.req, missing, room)
            kept = "matched" if isinstance(room, Reservation) else "unkept"
            self._runtime.mailbox.send(self._router, Note(relay.req, kept, match.blocks))
            wanted = match.blocks if fits else prompt.blocks  # P sends what is behind it
            self._runtime.mailbox.send(relay.prefill, Matched(relay.req, wanted))
        if not fits:
            self._give_up(guest, "kv-memory-too-small")
        elif match.blocks == prompt.blocks:
            self._submit(guest, Kv(self._model.layout))

    def _hear(self, guest: Guest, message: Message) -> None:
        part = guest.part
        match message:
            case FirstToken():
                guest.first = message.token
                if guest.kv is not None and part is None:
                    self._begin(guest)
            case Cancel() if part is not None:
                self._act(guest, part.cancelled())
            case Cancel():
                self._give_up(guest, "cancelled")
            case Failure(_, reason):
                if guest.received is None:
                    self._give_up(guest, reason)
            case Takeover() if part is None and guest.received is not None:
                self._give_up(guest, "full")  # it waits for room: MD need not wait for it
            case _ if part is None:
                guest.early.append(message)
            case Takeover():
                self._act(guest, part.taken_over(message, self._pressure))
            case Refused(_, reason):
                self._act(guest, part.main_lost(reason))

    def _lose(self, name: str) -> None:
        """An agent is gone for good: every answer goes on without it, or ends."""
        self._runtime.mailbox.drop(name)
        sender = self._senders.get(name)
        if sender is not None and self._increments is not None:
            self._increments.create_task(sender.close())
        for guest in tuple(self._guests.values()):
            relay = guest.relay
            if name == relay.client:
                self._hear(guest, Cancel(relay.req))
            elif name == relay.decode:
                self._hear(guest, Refused(relay.req, "decode-lost"))
            elif name == relay.prefill:
                self._hear(guest, Failure(relay.req, "prefill-lost"))

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
        if guest is None or guest.received is not None:
            raise refusal(transfer, "the request has ended, or its KV is here")
        missing = guest.prompt.blocks - guest.match.blocks
        if len(transfer.blocks) != missing:
            raise refusal(transfer, f"{len(transfer.blocks)} blocks, missing are {missing}")
        self._submit(guest, self._model.restore(transfer.blocks))

    def _submit(self, guest: Guest, received: Kv) -> None:
        """All of the prompt's KV is on this host; it waits for room in device memory."""
        guest.received = received
        missing = guest.prompt.blocks - guest.match.blocks
        self._memory.submit(
            guest.relay.req, guest.prompt.input_tokens, guest.relay.output_tokens,
            missing * self._runtime.config.shape.block_tokens,
        )  # fmt: skip

    def _load(self, req: int) -> None:
        """All of the prompt's KV is on the device, for the first time or again."""
        guest = self._guests[req]
        if guest.received is None:
            raise AgentError("decode", f"request {req}", "its KV is not here")
        if not guest.parts:
            guest.parts = (*guest.match.values, *pieces(guest.received, self._block))
            if isinstance(guest.room, Reservation):
                published = self._cache.publish(guest.prompt.keys, guest.parts, guest.room)
                emit_published(self._runtime.events, self._cache, req, published)
        kv = join(Kv(self._model.layout), guest.parts, self._block)
        # The last token is fed again, unless P has chosen what follows it.
        guest.kv = kv.prefix(kv.length - (not self._prefilled))
        if guest.part is None and not (self._prefilled and guest.first is None):
            self._begin(guest)
        self._work.set()

    def _drop(self, req: int) -> None:
        """Preempted: only what lies on the host is left."""
        guest = self._guests[req]
        guest.kv = None
        if guest.part is not None:
            guest.part.preempted()

    def _begin(self, guest: Guest) -> None:
        """Its KV is on the device: the first eager token comes with the next step."""
        occupancy = self._serving.handoff.occupancy
        guest.part = RelayPart(
            guest.relay.req, guest.prompt.tokens[-1], guest.relay.output_tokens,
            frozenset(self._serving.stop),
            occupancy if guest.relay.decode else _whole(guest.relay.output_tokens),
            self._runtime.clock.now_ns(), guest.first,
        )  # fmt: skip
        self._act(guest, guest.part.begun())
        for message in guest.early:
            self._hear(guest, message)

    def _act(self, guest: Guest, actions: Actions) -> None:
        for action in actions:
            match action:
                case Send(Peer.CLIENT, message):
                    self._runtime.mailbox.send(guest.relay.client, message)
                case Send(Peer.MAIN, message) if guest.relay.decode:
                    size = self._runtime.mailbox.send(guest.relay.decode, message)
                    if isinstance(message, TokenIds):
                        guest.told += len(message.tokens)
                        guest.told_bytes += size
                case SendIncrement(rows) if self._increments is not None:
                    self._increments.create_task(self._increment(guest, self._taken(guest, rows)))
                case Release() if guest.part is not None:
                    cause = guest.part.cause
                    self._forget(guest, guest.part.emitted, cause.value if cause else "")
        self._work.set()

    def _taken(self, guest: Guest, rows: int) -> OutgoingTransfer:
        """The rows of the output so far, on the host before anybody else gets their room."""
        shape, begin = self._runtime.config.shape, len(guest.prompt.tokens) - 1
        content = guest.rows.part(begin, begin + rows).block_bytes(0, rows)
        self._memory.leave(guest.relay.req)
        size = rows * shape.bytes_per_token + shape.fixed_bytes
        return OutgoingTransfer(guest.relay.req, INCREMENT, (content,), size)

    async def _increment(self, guest: Guest, transfer: OutgoingTransfer) -> None:
        """The naive handoff: rows go to the host, and to MD through the pool."""
        req = guest.relay.req
        hardware = self._runtime.config.hardware
        await self._runtime.clock.spend(copy_ns(hardware, transfer.wire_bytes))
        try:
            await self._senders[guest.relay.decode].send(transfer)
        except TestbedError as error:
            reason = str(getattr(error, "reason", type(error).__name__))
            self._runtime.mailbox.send(guest.relay.decode, Failure(req, reason))
        if guest.part is not None:
            self._act(guest, guest.part.increment_done())

    def _forget(self, guest: Guest, tokens: int, cause: str) -> None:
        req = guest.relay.req
        self._runtime.events.emit(
            Kind.RELAY_END, guest.told_bytes, req=req, tokens=tokens, cause=cause, ids=guest.told
        )
        self._give_back(guest)
        del self._guests[req]
        self._runtime.mailbox.send(self._router, Note(req, "relayed", tokens))

    def _give_back(self, guest: Guest) -> None:
        """The lock, the room that was not published into, and device memory."""
        if isinstance(guest.room, Reservation) and guest.room.is_open:
            guest.room.cancel()
        guest.match.release()
        guest.received = None
        guest.kv = None
        self._memory.leave(guest.relay.req)

    async def _decode(self) -> None:
        hardware = self._runtime.config.hardware
        while True:
            batch = self._plan()
            if not batch:
                self._work.clear()
                await self._work.wait()
                continue
            context = sum(one.prompt.input_tokens + feed.position for one, _, feed in batch)
            extra = sum(len(feed.tokens) - 1 for _, _, feed in batch)
            await self._runtime.clock.spend(decode_ns(hardware, len(batch), context, extra))
            choices = self._model.decode(
                [Step(one.rows, feed.tokens, request_of(one.relay.req)) for one, _, feed in batch]
            )
            self._memory.complete()
            self._runtime.progress()
            now_ns = self._runtime.clock.now_ns()
            for (one, part, _), choice in zip(batch, choices, strict=True):
                self._act(one, part.stepped(choice.token, self._pressure, now_ns))

    def _plan(self) -> list[tuple[Guest, RelayPart, Feed]]:
        """Who is fed what in the next step."""
        wanted = {
            req: guest.part.pending for req, guest in self._guests.items() if guest.part is not None
        }
        batch: list[tuple[Guest, RelayPart, Feed]] = []
        for share in self._memory.plan(wanted).feeds:
            guest = self._guests[share.identity]
            feed = guest.part.plan(share.tokens) if guest.part is not None else None
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


async def relay_main(runtime: Runtime) -> None:
    """Entry point of a relay-decode agent."""
    if runtime.config.serving is None:
        raise AgentError("start RLD", runtime.config.node, "its config has no serving part")
    await RelayServer(runtime, runtime.config.serving).run()
