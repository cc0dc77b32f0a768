"""RLD of the serving plane: full KV over the fast link in, eager tokens out.

::

    Relay (router) ─▶ match, Matched to P (with a cache of its own)
    KV (P) ─▶ device memory ─▶ RelayPart ─▶ every token to the client and, as an id, to MD
                    Takeover (MD) ─▶ go on to the promised position, then forget the request
"""

from __future__ import annotations

from collections.abc import Sequence

from testbed.contract.defect import Defect
from testbed.contract.event import Kind
from testbed.contract.handoff import HandoffMode
from testbed.contract.role import Role
from testbed.contract.serving import FirstToken as Who
from testbed.contract.serving import Serving
from testbed.errors import AgentError
from testbed_agents.control.mailbox import Departed
from testbed_agents.control.plane import Found, HeldUp, Lost, Matched, Note, Relay, Seek
from testbed_agents.handoff.action import Actions, Release, Send, SendIncrement
from testbed_agents.handoff.choice import whole
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
from testbed_agents.model.kv import Kv
from testbed_agents.model.load import load_model
from testbed_agents.relay.guest import Guest
from testbed_agents.relay.increments import Increments
from testbed_agents.runtime import Runtime, until_stopped
from testbed_agents.serving.announced import Announced, refusal
from testbed_agents.serving.device import DeviceMemory
from testbed_agents.serving.inbox import KvInbox
from testbed_agents.serving.presence import reappear
from testbed_agents.serving.shelf import Shelf
from testbed_agents.serving.steps import Steps, Turn
from testbed_agents.transport import IncomingTransfer, KvReceiver, KvSender, senders_to


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
        self._cached = serving.caches.relay_bytes > 0
        self._shelf = Shelf(
            runtime, serving, self._model, serving.caches.relay_bytes, quiet=not self._cached
        )
        memory = serving.memory
        self._memory = DeviceMemory(runtime, memory, memory.relay_bytes, self._load, self._drop)
        self._steps = Steps(runtime, self._model, self._memory, self._plan, self._stepped)
        self._prefilled = serving.first_token is Who.PREFILL
        self._guests: dict[int, Guest] = {}
        self._firsts: dict[int, int] = {}
        """First tokens of P that came before the request itself."""
        self._failures: dict[int, str] = {}
        """Why no KV comes, where that came before the request itself."""
        self._announced = Announced(runtime.patience_s)
        self._router = runtime.router
        self._receiver = receiver or KvReceiver(config, runtime.clock, runtime.events)
        runtime.trouble.receivers.append(self._receiver)
        if senders is None:
            roles = (Role.DECODE,) if serving.handoff.mode is HandoffMode.INCREMENTAL_KV else ()
            senders = senders_to(config, runtime.clock, runtime.events, *roles)
        runtime.trouble.senders.update(senders)
        self._increments = Increments(runtime, senders, self._sent)

    async def run(self) -> None:
        """Serves until the lab says stop."""
        for peer in self._runtime.config.peers:
            if self._cached or peer.role is not Role.PREFILL:
                self._runtime.mailbox.connect(peer.name)
        self._receiver.bind()
        await self._runtime.barrier()
        async with self._increments.opened():
            try:
                await until_stopped(
                    self._runtime.stop,
                    self._listen(),
                    self._receiver.serve(self._arrived),
                    self._memory.serve(),
                    self._steps.serve(),
                )
            finally:
                await self._receiver.close()
        under_way = self._guests.values()
        for guest in under_way:
            self._give_back(guest)
        self._memory.close()
        self._shelf.close(len(under_way))

    @property
    def _pressure(self) -> float:
        """Share of the batch in use, 0..1: of those whose KV is here, not of those still at P."""
        here = sum([guest.held.received is not None for guest in self._guests.values()])
        return min(1.0, here / self._runtime.config.hardware.max_batch)

    async def _listen(self) -> None:
        while True:
            sender, message = await self._runtime.mailbox.receive()
            match message:
                case Relay():
                    self._expect(message)
                case FirstToken() | Takeover() | Refused() | Cancel() | Failure() | HeldUp():
                    guest = self._guests.get(message.req)
                    if guest is not None:
                        self._hear(guest, message)
                    elif isinstance(message, FirstToken) and message.req not in self._announced:
                        self._firsts[message.req] = message.token
                    elif isinstance(message, Failure) and message.req not in self._announced:
                        self._failures[message.req] = message.reason
                case Lost(name):
                    self._lose(name)
                case Departed():
                    self._lose(sender)
                case Found(name):
                    self._runtime.mailbox.restore(name)
                    self._increments.find(name)
                case Seek():
                    self._begin_anew()
                case _:
                    raise AgentError("obey a control message", sender, type(message).__name__)

    def _expect(self, relay: Relay) -> None:
        fits = self._memory.fits(sum(relay.lengths), relay.output_tokens)
        held = self._shelf.take(relay.req, relay.segments, relay.lengths, coming=fits)
        prompt, match = held.prompt, held.match
        guest = Guest(relay, held, first=self._firsts.pop(relay.req, None))
        self._guests[relay.req] = guest
        self._announced.add(relay.req)
        if self._cached:
            self._runtime.mailbox.send(self._router, Note(relay.req, held.kept, match.blocks))
            wanted = match.blocks if fits else prompt.blocks  # P sends what is behind it
            self._runtime.mailbox.send(relay.prefill, Matched(relay.req, wanted))
        if not fits:
            self._give_up(guest, "kv-memory-too-small")
        elif not held.missing:
            self._submit(guest, Kv(self._model.layout))
        reason = self._failures.pop(relay.req, "")
        if reason and relay.req in self._guests:
            self._hear(guest, Failure(relay.req, reason))

    def _hear(self, guest: Guest, message: Message | HeldUp) -> None:
        part = guest.part
        match message:
            case FirstToken():
                guest.first = message.token
                if guest.held.kv is not None and part is None:
                    self._begin(guest)
            case Cancel() if part is not None:
                self._act(guest, part.cancelled())
                self._increments.cut(message.req)
            case Cancel():
                self._give_up(guest, "cancelled")
            case Failure(_, reason):
                awaits_first = self._prefilled and guest.first is None
                if part is None and (guest.held.received is None or awaits_first):
                    self._give_up(guest, reason)
            case Takeover() if part is None:  # it waits for KV or room: MD need not wait for it
                self._give_up(guest, "not-begun")
            case _ if part is None:
                guest.early.append(message)
            case Takeover():
                self._act(guest, part.taken_over(message, self._pressure))
            case HeldUp(req):
                if self._runtime.config.guards(Defect.RELAY_STAY) and part.held_up():
                    self._runtime.events.emit(Kind.RELAY_STAYS, req=req)
            case Refused(_, reason):
                self._act(guest, part.main_lost(reason))

    def _lose(self, name: str) -> None:
        """An agent is gone for good: every answer goes on without it, or ends."""
        self._runtime.mailbox.drop(name)
        self._increments.lose(name)
        for guest in tuple(self._guests.values()):
            relay = guest.relay
            if name == relay.client:
                self._hear(guest, Cancel(relay.req))
            elif name == relay.decode:
                self._hear(guest, Refused(relay.req, "decode-lost"))
            elif name == relay.prefill:
                self._hear(guest, Failure(relay.req, "prefill-lost"))

    def _begin_anew(self) -> None:
        """All others have given this agent up: so does it everything that it was asked."""
        for guest in tuple(self._guests.values()):
            self._hear(guest, Cancel(guest.relay.req))
        self._firsts.clear()
        reappear(self._runtime)

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
        if guest is None or guest.held.received is not None:
            raise refusal(transfer, "the request has ended, or its KV is here")
        missing = guest.held.missing
        if len(transfer.blocks) != missing:
            raise refusal(transfer, f"{len(transfer.blocks)} blocks, missing are {missing}")
        self._submit(guest, self._model.restore(transfer.blocks))

    def _submit(self, guest: Guest, received: Kv) -> None:
        """All of the prompt's KV is on this host; it waits for room in device memory."""
        guest.held.received = received
        self._memory.submit(guest.relay.req, guest.held, guest.relay.output_tokens)

    def _load(self, req: int) -> None:
        """All of the prompt's KV is on the device, for the first time or again."""
        guest = self._guests[req]
        if self._shelf.load(req, guest.held):
            self._shelf.publish(req, guest.held)
        if guest.part is None and not (self._prefilled and guest.first is None):
            self._begin(guest)
        self._steps.wake()

    def _drop(self, req: int) -> None:
        """Preempted: only what lies on the host is left."""
        guest = self._guests[req]
        guest.held.kv = None
        if guest.part is not None:
            guest.part.preempted()

    def _begin(self, guest: Guest) -> None:
        """Its KV is on the device: the first eager token comes with the next step."""
        occupancy = self._serving.handoff.occupancy
        guest.part = RelayPart(
            guest.relay.req, guest.held.prompt.tokens[-1], guest.relay.output_tokens,
            frozenset(self._runtime.config.model.stop),
            occupancy if guest.relay.decode else whole(guest.relay.output_tokens),
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
                case SendIncrement(rows):  # before anybody else gets the room of its rows
                    self._increments.start(guest, rows)
                    self._memory.leave(guest.relay.req)
                case Release() if guest.part is not None:
                    cause = guest.part.cause
                    self._forget(guest, guest.part.emitted, cause.value if cause else "")
        self._steps.wake()

    def _sent(self, guest: Guest) -> None:
        """Its increment has arrived, or never will."""
        if guest.part is not None:
            self._act(guest, guest.part.increment_done())

    def _forget(self, guest: Guest, tokens: int, cause: str) -> None:
        req = guest.relay.req
        self._runtime.events.emit(
            Kind.RELAY_END, guest.told_bytes, req=req, tokens=tokens, cause=cause, ids=guest.told
        )
        if guest.held.received is None:
            self._receiver.abort(req)
        self._give_back(guest)
        del self._guests[req]
        self._runtime.mailbox.send(self._router, Note(req, "relayed", tokens))

    def _give_back(self, guest: Guest) -> None:
        guest.held.give_back()
        self._memory.leave(guest.relay.req)

    def _stepped(self, turns: Sequence[Turn], tokens: Sequence[int]) -> None:
        now_ns = self._runtime.clock.now_ns()
        for turn, token in zip(turns, tokens, strict=True):
            guest = self._guests[turn.job]
            if guest.part is not None:
                self._act(guest, guest.part.stepped(token, self._pressure, now_ns))

    def _plan(self) -> list[Turn]:
        """Who is fed what in the next step."""
        wanted = {
            req: guest.part.pending for req, guest in self._guests.items() if guest.part is not None
        }
        turns: list[Turn] = []
        for share in self._memory.plan(wanted).feeds:
            guest = self._guests[share.identity]
            feed = guest.part.plan(share.tokens) if guest.part is not None else None
            if feed is not None:
                turns.append(Turn(share.identity, guest.held, feed))
        return turns


async def relay_main(runtime: Runtime) -> None:
    """Entry point of a relay-decode agent."""
    if runtime.config.serving is None:
        raise AgentError("start RLD", runtime.config.node, "its config has no serving part")
    await RelayServer(runtime, runtime.config.serving).run()
