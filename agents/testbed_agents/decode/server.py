"""MD of the serving plane: decode-side radix cache, handoff, continuous batching.

::

    Prepare ─▶ match, lock, reserve ─▶ Matched to P ─▶ [ KV verified ] ─▶ device memory, copy
                                                             publish ◀─ MainPart ◀──┘
    TokenIds, Evicted, increment of RLD ──────────────────────────────▶ MainPart ─▶ client
    device memory ─ preempts the newest ─▶ copied in again, its tokens fed again

What one answer does is decided by the pure ``handoff.main``; this agent gives it KV,
steps on the clock and the real model, and carries its messages.
"""

from __future__ import annotations

import asyncio

from testbed.contract.attempt import request_of
from testbed.contract.event import Kind
from testbed.contract.handoff import HandoffMode
from testbed.contract.role import Role
from testbed.contract.serving import FirstToken as Who
from testbed.contract.serving import Serving
from testbed.errors import AgentError
from testbed_agents.batching import limits_of
from testbed_agents.cache import RadixCache, Reservation
from testbed_agents.control.plane import Lost, Matched, Note, Prepare
from testbed_agents.decode.answer import Answer
from testbed_agents.handoff.action import Actions, Feed, Publish, Release, Send
from testbed_agents.handoff.choice import HandoffChoice, lead_tokens
from testbed_agents.handoff.main import MainPart
from testbed_agents.handoff.message import (
    Cancel,
    Emission,
    Evicted,
    Failure,
    FirstToken,
    Message,
    Peer,
    Resend,
    TokenIds,
)
from testbed_agents.hardware import copy_ns, decode_ns
from testbed_agents.model.kv import Kv
from testbed_agents.model.load import load_model, load_prompts
from testbed_agents.model.protocol import Step
from testbed_agents.runtime import Runtime, until_stopped
from testbed_agents.serving.announced import Announced, refusal
from testbed_agents.serving.device import DeviceMemory
from testbed_agents.serving.inbox import KvInbox
from testbed_agents.serving.prompt import read_prompt
from testbed_agents.serving.record import close_cache, emit_matched, emit_published, emit_reserved
from testbed_agents.serving.rows import Piece, join, load_documents, pieces
from testbed_agents.transport import INCREMENT, IncomingTransfer, KvReceiver


class DecodeServer:
    """State of one MD."""

    def __init__(self, runtime: Runtime, serving: Serving, receiver: KvInbox | None = None) -> None:
        self._runtime = runtime
        self._serving = serving
        config = runtime.config
        shape = config.shape
        self._block = shape.block_tokens // shape.ratio
        self._model = load_model(config.model)
        self._model.watch(runtime.layer_progress())
        self._prompts = load_prompts(config.model, config.seed)
        self._cache: RadixCache[Piece] = RadixCache(
            serving.caches.decode_bytes, shape.block_tokens * shape.bytes_per_token
        )
        load_documents(self._cache, self._model, self._prompts, shape, serving.documents)
        runtime.progress()
        self._choices: dict[str, HandoffChoice] = {}
        limits = limits_of(config.hardware, shape, serving.memory, serving.memory.decode_bytes)
        self._memory = DeviceMemory(runtime, limits, self._load, self._drop)
        self._prefilled = serving.first_token is Who.PREFILL
        self._answers: dict[int, Answer] = {}
        self._orphans: dict[int, Answer] = {}
        """Refused here, all given back, while RLD may still end the answer alone."""
        self._early: dict[int, list[tuple[Message, str]]] = {}
        self._announced = Announced(config.pool.transfer_timeout_ns)
        self._work = asyncio.Event()
        self._router = next(peer.name for peer in config.peers if peer.role is Role.ROUTER)
        self._receiver = receiver or KvReceiver(config, runtime.clock, runtime.events)

    async def run(self) -> None:
        """Serves until the lab says stop."""
        for peer in self._runtime.config.peers:
            self._runtime.mailbox.connect(peer.name)
        self._receiver.bind()
        await self._runtime.barrier()
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
        under_way = len(self._answers)
        for answer in self._answers.values():
            self._give_back(answer)
        self._memory.close()
        close_cache(self._runtime.events, self._cache, under_way)

    async def _listen(self) -> None:
        while True:
            sender, message = await self._runtime.mailbox.receive()
            match message:
                case Prepare():
                    self._prepare(message)
                case FirstToken() | TokenIds() | Evicted() | Resend() | Cancel() | Failure():
                    answer = self._answers.get(message.req) or self._orphans.get(message.req)
                    if answer is not None:
                        self._hear(answer, message, sender)
                    elif message.req not in self._announced:
                        self._early.setdefault(message.req, []).append((message, sender))
                    elif isinstance(message, Resend):  # all of it is gone here
                        self._runtime.mailbox.send(sender, Failure(message.req, "relay-lost"))
                case Lost(name):
                    self._lose(name)
                case _:
                    raise AgentError("obey a control message", sender, type(message).__name__)

    def _lose(self, name: str) -> None:
        """An agent is gone for good: every answer goes on without it, or ends."""
        self._runtime.mailbox.drop(name)
        for answer in (*self._answers.values(), *self._orphans.values()):
            prepare, part = answer.prepare, answer.part
            if name == prepare.client:
                self._act(answer, part.cancelled())
            elif name == prepare.relay:
                self._act(answer, part.relay_lost())
                self._orphans.pop(prepare.req, None)
            elif name == prepare.prefill and answer.received is None:
                self._act(answer, part.kv_refused("prefill-lost"))

    def _prepare(self, prepare: Prepare) -> None:
        config = self._runtime.config
        prompt = read_prompt(
            self._prompts, config.shape, prepare.req, prepare.segments, prepare.lengths
        )
        match = self._cache.match(prompt.keys)
        emit_matched(self._runtime.events, self._cache, prepare.req, match.blocks, prompt)
        missing = prompt.blocks - match.blocks
        room = self._cache.reserve(missing)
        emit_reserved(self._runtime.events, self._cache, prepare.req, missing, room)
        kept = "matched" if isinstance(room, Reservation) else "unkept"
        self._runtime.mailbox.send(self._router, Note(prepare.req, kept, match.blocks))
        step_ns = max(1, decode_ns(config.hardware, 1, prompt.input_tokens))
        part = MainPart(
            prepare.req, prompt.tokens[-1], prepare.output_tokens, frozenset(self._serving.stop),
            lead_tokens(self._serving.rtt_ns, step_ns), bool(prepare.relay), self._prefilled,
        )  # fmt: skip
        answer = Answer(prepare, prompt, match, part, room)
        self._answers[prepare.req] = answer
        self._announced.add(prepare.req)
        fits = self._memory.fits(prompt.input_tokens, prepare.output_tokens)
        wanted = match.blocks if fits else prompt.blocks  # P sends what is behind it: nothing
        self._runtime.mailbox.send(prepare.prefill, Matched(prepare.req, wanted))
        if not fits:
            self._act(answer, part.kv_refused("kv-memory-too-small"))
        elif not missing:
            self._submit(answer, Kv(self._model.layout))
        for message, sender in self._early.pop(prepare.req, []):
            if prepare.req in self._answers or prepare.req in self._orphans:
                self._hear(answer, message, sender)

    def _hear(self, answer: Answer, message: Message, sender: str) -> None:
        part = answer.part
        match message:
            case FirstToken():
                self._act(answer, part.first_heard(message.token))
            case TokenIds():
                self._act(answer, part.heard_tokens(message))
            case Evicted():
                self._act(answer, part.evicted(message))
            case Resend():
                self._act(answer, part.resend(message))
            case Cancel():
                self._act(answer, part.cancelled())
            case Failure() if sender == answer.prepare.relay:
                self._act(answer, part.increment_failed())
            case Failure(_, reason) if answer.received is None:
                self._act(answer, part.kv_refused(reason))
        if isinstance(message, Evicted):
            self._orphans.pop(message.req, None)

    async def _arrived(self, transfer: IncomingTransfer) -> None:
        """Applies verified blocks; the acknowledgement leaves when this returns."""
        await self._announced.wait(transfer)
        answer = self._answers.get(transfer.request)
        if answer is not None and transfer.epoch == INCREMENT:
            await self._extend(answer, transfer)
            return
        if answer is None or answer.received is not None:
            raise refusal(transfer, "the request has ended, or its KV is here")
        missing = answer.prompt.blocks - answer.match.blocks
        if len(transfer.blocks) != missing:
            cause = f"{len(transfer.blocks)} blocks, missing are {missing}"
            self._act(answer, answer.part.kv_refused("kv-refused"))
            raise refusal(transfer, cause)
        self._submit(answer, self._model.restore(transfer.blocks))

    async def _extend(self, answer: Answer, transfer: IncomingTransfer) -> None:
        """RLD's rows for its output tokens: no need to compute them here."""
        rows = self._model.restore(transfer.blocks)
        if not answer.part.awaits_increment or answer.kv is None or rows.length != answer.part.end:
            raise refusal(transfer, f"{rows.length} rows of RLD are not what is missing")
        await self._runtime.clock.spend(copy_ns(self._runtime.config.hardware, transfer.wire_bytes))
        if not answer.part.awaits_increment:
            return  # it ended meanwhile
        if answer.kv is None or not self._memory.grow(transfer.request, rows.length):
            raise refusal(transfer, "no room on the device for the rows of RLD")
        answer.kv = answer.kv.prefix(len(answer.prompt.tokens) - 1).join(rows)
        self._act(answer, answer.part.increment_arrived(rows.length))

    def _submit(self, answer: Answer, received: Kv) -> None:
        """All of the prompt's KV is on this host; it waits for room in device memory."""
        answer.received = received
        missing = answer.prompt.blocks - answer.match.blocks
        self._memory.submit(
            answer.prepare.req, answer.prompt.input_tokens, answer.prepare.output_tokens,
            missing * self._runtime.config.shape.block_tokens,
        )  # fmt: skip

    def _load(self, req: int) -> None:
        """All of the prompt's KV is on the device, for the first time or again."""
        answer = self._answers[req]
        if answer.received is None:
            raise AgentError("decode", f"request {answer.prepare.req}", "its KV is not here")
        again = bool(answer.parts)
        if not again:
            answer.parts = (*answer.match.values, *pieces(answer.received, self._block))
        kv = join(Kv(self._model.layout), answer.parts, self._block)
        # The last token is fed again, unless P has chosen what follows it.
        answer.kv = kv.prefix(kv.length - (not self._prefilled))
        if again:
            self._work.set()
            return
        mode = HandoffMode.CATCH_UP
        if answer.prepare.relay:
            choice = self._choices.setdefault(
                answer.prepare.relay, HandoffChoice(self._serving.handoff)
            )
            mode = choice.choose(answer.part.load_percent / 100)
            self._runtime.events.emit(
                Kind.HANDOFF_START, req=answer.prepare.req, mode=mode.value,
                heard=answer.part.heard,
            )  # fmt: skip
        self._act(answer, answer.part.kv_verified(mode))
        self._runtime.progress()

    def _drop(self, req: int) -> None:
        """Preempted: only what lies on the host is left."""
        answer = self._answers[req]
        answer.kv = None
        answer.part.preempted()

    def _act(self, answer: Answer, actions: Actions) -> None:
        req = answer.prepare.req
        for action in actions:
            match action:
                case Send(Peer.CLIENT, message):
                    if answer.prepare.relay and isinstance(message, Emission):
                        self._taken_over(answer, message)
                    self._runtime.mailbox.send(answer.prepare.client, message)
                case Send(Peer.RELAY, message) if answer.prepare.relay:
                    self._runtime.mailbox.send(answer.prepare.relay, message)
                case Publish():
                    room = answer.room
                    if isinstance(room, Reservation):
                        published = self._cache.publish(answer.prompt.keys, answer.parts, room)
                        emit_published(self._runtime.events, self._cache, req, published)
                case Release():
                    self._release(answer)
        self._work.set()

    def _taken_over(self, answer: Answer, message: Emission) -> None:
        """The first token of this side is the end of a handoff."""
        if not answer.over:
            answer.over = True
            self._runtime.events.emit(
                Kind.HANDOFF_END, req=answer.prepare.req, position=message.position,
                computed=answer.extended,
            )  # fmt: skip

    def _release(self, answer: Answer) -> None:
        req, part = answer.prepare.req, answer.part
        if answer.began:
            self._runtime.events.emit(Kind.DECODE_END, req=req, tokens=len(part.answers))
        self._give_back(answer)
        del self._answers[req]
        if part.orphaned:
            self._orphans[req] = answer
        self._runtime.mailbox.send(self._router, Note(req, "released", len(part.answers)))

    def _give_back(self, answer: Answer) -> None:
        """The lock, the room that was not published into, and device memory."""
        if isinstance(answer.room, Reservation) and answer.room.is_open:
            answer.room.cancel()
        answer.match.release()
        answer.received = None
        answer.kv = None
        self._memory.leave(answer.prepare.req)

    async def _decode(self) -> None:
        hardware = self._runtime.config.hardware
        while True:
            batch = self._plan()
            if not batch:
                self._work.clear()
                await self._work.wait()
                continue
            context = sum(one.prompt.input_tokens + feed.position for one, feed in batch)
            extra = sum(len(feed.tokens) - 1 for _, feed in batch)
            await self._runtime.clock.spend(decode_ns(hardware, len(batch), context, extra))
            choices = self._model.decode(
                [Step(one.rows, feed.tokens, request_of(one.prepare.req)) for one, feed in batch]
            )
            self._memory.complete()
            self._runtime.progress()
            for (one, feed), choice in zip(batch, choices, strict=True):
                one.extended += min(len(feed.tokens), max(0, one.part.heard - one.part.fed))
                self._act(one, one.part.stepped(choice.token))

    def _plan(self) -> list[tuple[Answer, Feed]]:
        """Who is fed what in the next step; nobody where all had better wait for an id."""
        wanted = {req: answer.part.pending for req, answer in self._answers.items()}
        if all(self._answers[req].part.may_wait for req, tokens in wanted.items() if tokens):
            wanted = {}
        batch: list[tuple[Answer, Feed]] = []
        for share in self._memory.plan(wanted).feeds:
            answer = self._answers[share.identity]
            feed = answer.part.plan(share.tokens)
            if feed is not None:
                batch.append((answer, feed))
        for answer, _ in batch:
            if not answer.began:
                answer.began = True
                self._runtime.events.emit(
                    Kind.DECODE_START, req=answer.prepare.req, batch=len(batch)
                )
        return batch
