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
from collections.abc import Sequence

from testbed.contract.defect import Defect
from testbed.contract.event import Kind
from testbed.contract.serving import FirstToken as Who
from testbed.contract.serving import Serving
from testbed.errors import AgentError
from testbed_agents.control.mailbox import Departed
from testbed_agents.control.plane import Found, Lost, Matched, Note, Prepare, Seek
from testbed_agents.decode.answer import Answer
from testbed_agents.decode.answers import Answers
from testbed_agents.handoff.action import Actions, Publish, Release, Send
from testbed_agents.handoff.choice import Choices, lead_tokens
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
from testbed_agents.model.load import load_model
from testbed_agents.runtime import Runtime, until_stopped
from testbed_agents.serving.announced import Announced, refusal
from testbed_agents.serving.device import DeviceMemory
from testbed_agents.serving.inbox import KvInbox
from testbed_agents.serving.presence import reappear
from testbed_agents.serving.shelf import Shelf
from testbed_agents.serving.steps import Steps, Turn
from testbed_agents.transport import INCREMENT, IncomingTransfer, KvReceiver


class DecodeServer:
    """State of one MD."""

    def __init__(self, runtime: Runtime, serving: Serving, receiver: KvInbox | None = None) -> None:
        self._runtime = runtime
        self._serving = serving
        config = runtime.config
        self._model = load_model(config.model)
        self._model.watch(runtime.layer_progress())
        self._shelf = Shelf(runtime, serving, self._model, serving.caches.decode_bytes)
        runtime.progress()
        self._choices = Choices(serving.handoff)
        memory = serving.memory
        self._memory = DeviceMemory(runtime, memory, memory.decode_bytes, self._load, self._drop)
        self._steps = Steps(runtime, self._model, self._memory, self._plan, self._stepped)
        self._prefilled = serving.first_token is Who.PREFILL
        self._answers = Answers()
        self._announced = Announced(runtime.patience_s)
        self._router = runtime.router
        self._receiver = receiver or KvReceiver(config, runtime.clock, runtime.events)
        runtime.trouble.receivers.append(self._receiver)

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
                self._steps.serve(),
            )
        finally:
            await self._receiver.close()
        under_way = self._answers.active.values()
        for answer in under_way:
            self._give_back(answer)
        self._memory.close()
        self._shelf.close(len(under_way))

    async def _listen(self) -> None:
        while True:
            sender, message = await self._runtime.mailbox.receive()
            match message:
                case Prepare():
                    self._prepare(message)
                case FirstToken() | TokenIds() | Evicted() | Resend() | Cancel() | Failure():
                    answer = self._answers.find(message.req)
                    if answer is not None:
                        self._hear(answer, message, sender)
                    elif message.req not in self._announced:
                        self._answers.wait(message.req, message, sender)
                    elif isinstance(message, Resend):  # all of it is gone here
                        self._runtime.mailbox.send(sender, Failure(message.req, "relay-lost"))
                case Lost(name):
                    self._lose(name)
                case Departed():
                    self._lose(sender)
                case Found(name):
                    self._runtime.mailbox.restore(name)
                case Seek():
                    self._begin_anew()
                case _:
                    raise AgentError("obey a control message", sender, type(message).__name__)

    def _lose(self, name: str) -> None:
        """An agent is gone for good: every answer goes on without it, or ends."""
        self._runtime.mailbox.drop(name)
        for answer in self._answers.every():
            prepare, part = answer.prepare, answer.part
            if name == prepare.client:
                self._act(answer, part.cancelled())
            elif name == prepare.relay:
                self._act(answer, part.relay_lost())
                answer.settled.set()
                self._answers.forget(prepare.req)
            elif name == prepare.prefill and (answer.held.received is None or part.awaits_first):
                self._act(answer, part.kv_refused("prefill-lost"))

    def _begin_anew(self) -> None:
        """All others have given this agent up: so does it everything that it was asked."""
        for answer in self._answers.every():
            self._act(answer, answer.part.cancelled())
            if not answer.part.released and answer.held.received is None:
                self._act(answer, answer.part.kv_refused("given-up"))
            answer.settled.set()
            self._answers.forget(answer.prepare.req)
        reappear(self._runtime)

    def _prepare(self, prepare: Prepare) -> None:
        hardware = self._runtime.config.hardware
        refusal = self._refusal(prepare)
        fits = not refusal
        held = self._shelf.take(prepare.req, prepare.segments, prepare.lengths, coming=fits)
        prompt, match = held.prompt, held.match
        self._runtime.mailbox.send(self._router, Note(prepare.req, held.kept, match.blocks))
        step_ns = max(1, decode_ns(hardware, 1, prompt.input_tokens))
        part = MainPart(
            prepare.req, prompt.tokens[-1], prepare.output_tokens,
            frozenset(self._runtime.config.model.stop),
            lead_tokens(self._serving.rtt_ns, step_ns), bool(prepare.relay), self._prefilled,
        )  # fmt: skip
        answer = self._answers.active[prepare.req] = Answer(prepare, held, part)
        self._announced.add(prepare.req)
        wanted = match.blocks if fits else prompt.blocks  # P sends what is behind it: nothing
        self._runtime.mailbox.send(prepare.prefill, Matched(prepare.req, wanted))
        if not fits:
            self._act(answer, part.kv_refused(refusal))
        elif not held.missing:
            self._submit(answer, Kv(self._model.layout))
        for message, sender in self._answers.waited(prepare.req):
            if self._answers.find(prepare.req) is not None:
                self._hear(answer, message, sender)

    def _refusal(self, prepare: Prepare) -> str:
        """Why a request is not admitted; "" where it is."""
        if not self._memory.fits(sum(prepare.lengths), prepare.output_tokens):
            return "kv-memory-too-small"
        full = len(self._answers.active) >= self._serving.admission.decode_requests
        guarded = self._runtime.config.guards(Defect.ADMISSION_CONTROL)
        return "decode-full" if full and guarded else ""

    def _hear(self, answer: Answer, message: Message, sender: str) -> None:
        part = answer.part
        match message:
            case FirstToken():
                self._act(answer, part.first_heard(message.token))
            case TokenIds():
                self._act(answer, part.heard_tokens(message))
            case Evicted():
                self._act(answer, part.evicted(message))
                answer.settled.set()
                self._answers.forget(message.req)
            case Resend():
                self._act(answer, part.resend(message))
            case Cancel():
                self._act(answer, part.cancelled())
            case Failure() if sender == answer.prepare.relay:
                self._act(answer, part.increment_failed())
            case Failure(_, reason) if answer.held.received is None:
                self._act(answer, part.kv_refused(reason))

    async def _arrived(self, transfer: IncomingTransfer) -> None:
        """Applies verified blocks; the acknowledgement leaves when this returns."""
        await self._announced.wait(transfer)
        answer = self._answers.active.get(transfer.request)
        if answer is not None and transfer.epoch >= INCREMENT:
            await self._extend(answer, transfer)
            return
        if answer is None or answer.held.received is not None:
            raise refusal(transfer, "the request has ended, or its KV is here")
        missing = answer.held.missing
        if len(transfer.blocks) != missing:
            cause = f"{len(transfer.blocks)} blocks, missing are {missing}"
            self._act(answer, answer.part.kv_refused("kv-refused"))
            raise refusal(transfer, cause)
        self._submit(answer, self._model.restore(transfer.blocks))

    async def _extend(self, answer: Answer, transfer: IncomingTransfer) -> None:
        """RLD's rows for its output tokens: no need to compute them here.

        Its word where they end comes over another connection, and may come after them.
        """
        if answer.part.other.awaits_rows:
            patience_ns = self._runtime.config.pool.transfer_timeout_ns
            try:
                async with asyncio.timeout(self._runtime.clock.seconds(patience_ns)):
                    await answer.settled.wait()
            except TimeoutError as error:
                raise refusal(transfer, "RLD does not say where its part ends") from error
        rows = self._model.restore(transfer.blocks)
        other, held = answer.part.other, answer.held
        if not other.awaits_rows or held.kv is None or rows.length != other.end:
            raise refusal(transfer, f"{rows.length} rows of RLD are not what is missing")
        await self._runtime.clock.spend(copy_ns(self._runtime.config.hardware, transfer.wire_bytes))
        if not other.awaits_rows:
            return  # it ended meanwhile
        if held.kv is None or not self._memory.grow(transfer.request, rows.length):
            raise refusal(transfer, "no room on the device for the rows of RLD")
        held.kv = held.kv.prefix(len(held.prompt.tokens) - 1).join(rows)
        self._act(answer, answer.part.increment_arrived(rows.length))

    def _submit(self, answer: Answer, received: Kv) -> None:
        """All of the prompt's KV is on this host; it waits for room in device memory."""
        answer.held.received = received
        if answer.part.outcome is None:
            self._memory.submit(answer.prepare.req, answer.held, answer.prepare.output_tokens)
        self._spare(answer)

    def _load(self, req: int) -> None:
        """All of the prompt's KV is on the device, for the first time or again."""
        answer = self._answers.active[req]
        if self._shelf.load(req, answer.held):
            self._verified(answer)
        self._steps.wake()

    def _spare(self, answer: Answer) -> None:
        """An answer that is over needs no device: its KV is published from where it is."""
        held = answer.held
        if answer.part.outcome is not None and held.received is not None and not held.parts:
            self._shelf.gather(answer.prepare.req, held)
            self._verified(answer)

    def _verified(self, answer: Answer) -> None:
        """All of the prompt's KV is where it is to be: it is published, the handoff begins."""
        relay, part = answer.prepare.relay, answer.part
        mode = self._choices.choose(relay, part.other.load_percent / 100)
        if relay:
            self._runtime.events.emit(
                Kind.HANDOFF_START, req=answer.prepare.req, mode=mode.value, heard=part.known.heard
            )
        self._act(answer, part.kv_verified(mode))
        self._runtime.progress()

    def _drop(self, req: int) -> None:
        """Preempted: only what lies on the host is left."""
        answer = self._answers.active[req]
        answer.held.kv = None
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
                    self._shelf.publish(req, answer.held)
                case Release():
                    self._release(answer)
        self._spare(answer)
        self._steps.wake()

    def _taken_over(self, answer: Answer, message: Emission) -> None:
        """The first token of this side is the end of a handoff."""
        if not answer.over:
            answer.over = True
            self._runtime.events.emit(
                Kind.HANDOFF_END, req=answer.prepare.req, position=message.position,
                computed=answer.extended,
            )  # fmt: skip

    def _release(self, answer: Answer) -> None:
        req, told = answer.prepare.req, len(answer.part.known.tokens)
        if answer.began:
            self._runtime.events.emit(Kind.DECODE_END, req=req, tokens=told)
        if answer.held.received is None:
            self._receiver.abort(req)
        self._give_back(answer)
        self._answers.close(req)
        self._runtime.mailbox.send(self._router, Note(req, "released", told))

    def _give_back(self, answer: Answer) -> None:
        answer.held.give_back()
        self._memory.leave(answer.prepare.req)

    def _stepped(self, turns: Sequence[Turn], tokens: Sequence[int]) -> None:
        for turn, token in zip(turns, tokens, strict=True):
            answer = self._answers.active[turn.job]
            told = answer.part.known.heard - answer.part.rows.fed
            answer.extended += min(len(turn.feed.tokens), max(0, told))
            self._act(answer, answer.part.stepped(token))

    def _plan(self) -> list[Turn]:
        """Who is fed what in the next step; nobody where all had better wait for an id."""
        active = self._answers.active
        wanted = {req: answer.part.pending for req, answer in active.items()}
        if all(active[req].part.may_wait for req, tokens in wanted.items() if tokens):
            wanted = {}
        turns: list[Turn] = []
        for share in self._memory.plan(wanted).feeds:
            answer = active[share.identity]
            feed = answer.part.plan(share.tokens)
            if feed is not None:
                turns.append(Turn(share.identity, answer.held, feed))
        for turn in turns:
            answer = active[turn.job]
            if not answer.began:
                answer.began = True
                self._runtime.events.emit(Kind.DECODE_START, req=turn.job, batch=len(turns))
        return turns
