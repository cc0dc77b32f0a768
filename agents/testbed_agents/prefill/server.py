"""P of the serving plane: prefix cache, chunked prefill queue, both paths at once.

::

    Assign ─▶ cache match ─▶ queue ─▶ passes (profile time, real model) ─┬▶ RLD: all blocks
                                      MD's Matched ─────────────────────┴▶ MD: what it lacks

``Cancel`` ends a work wherever it is: its queued tokens are dropped, its transfers are cut,
its lock is released, and MD is told that nothing more will come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from testbed.contract.attempt import request_of
from testbed.contract.defect import Defect
from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.contract.serving import FirstToken as Who
from testbed.contract.serving import Serving
from testbed.errors import AgentError, TestbedError
from testbed_agents.cache import Match, Published, RadixCache
from testbed_agents.control.mailbox import Departed
from testbed_agents.control.plane import Assign, Found, HeldUp, Lost, Matched, Note, Seek
from testbed_agents.handoff.message import Cancel, Failure, FirstToken
from testbed_agents.hardware import prefill_pass_ns
from testbed_agents.model.kv import Kv
from testbed_agents.model.load import load_model, load_prompts
from testbed_agents.model.protocol import Step
from testbed_agents.prefill.schedule import Job, PrefillSchedule
from testbed_agents.runtime import Runtime, until_stopped
from testbed_agents.serving.presence import reappear
from testbed_agents.serving.prompt import Prompt, read_prompt
from testbed_agents.serving.record import close_cache, emit_matched, emit_published
from testbed_agents.serving.rows import Piece, block_bytes, join, load_documents, pieces
from testbed_agents.transport import KvSender, OutgoingTransfer, opened, reason_of, senders_to


@dataclass(slots=True)
class Work:
    """One prompt at P."""

    assign: Assign
    prompt: Prompt
    match: Match[Piece]
    matched: asyncio.Future[int]
    """What MD's cache holds, once it has said so."""
    relayed: asyncio.Future[int]
    """The same of RLD; nothing where it has no cache."""
    started: bool = False
    sending: asyncio.Task[None] | None = None
    """Both paths, once its prefill has ended."""
    owed: bool = True
    """Whether MD waits for its KV."""
    parts: tuple[Piece, ...] = field(default=())
    came_ns: int = 0
    """When it came: with one service level for all, the earliest has the earliest deadline."""


class PrefillServer:
    """State of one P."""

    def __init__(
        self, runtime: Runtime, serving: Serving, senders: dict[str, KvSender] | None = None
    ) -> None:
        self._runtime = runtime
        self._serving = serving
        config = runtime.config
        shape = config.shape
        self._ratio = shape.ratio
        self._block = shape.block_tokens // shape.ratio
        self._block_bytes = shape.block_tokens * shape.bytes_per_token
        self._model = load_model(config.model)
        self._model.watch(runtime.layer_progress())
        self._prompts = load_prompts(config.model, config.seed)
        self._cache: RadixCache[Piece] = RadixCache(serving.caches.prefill_bytes, self._block_bytes)
        load_documents(self._cache, self._model, self._prompts, shape, serving.documents)
        runtime.progress()
        self._schedule = PrefillSchedule(serving.chunk_tokens, serving.prefill_batch)
        self._works: dict[int, Work] = {}
        self._early: dict[tuple[int, str], int] = {}
        self._assigned: set[int] = set()
        """Every job so far: what comes for one that is over is not early, but late."""
        self._busy = asyncio.Event()
        self._router = runtime.router
        self._senders = (
            senders_to(config, runtime.clock, runtime.events, Role.DECODE, Role.RELAY)
            if senders is None
            else senders
        )
        runtime.trouble.senders.update(self._senders)
        for sender in self._senders.values():
            sender.held_up = self._held_up

    async def run(self) -> None:
        """Serves until the lab says stop."""
        await self._runtime.barrier()
        async with asyncio.TaskGroup() as transfers, opened(self._senders.values()):
            await until_stopped(
                self._runtime.stop, self._listen(transfers), self._compute(transfers)
            )
            for work in self._works.values():  # it may wait for a match that never comes
                if work.sending is not None:
                    work.sending.cancel()
        under_way = len(self._works)
        for work in self._works.values():  # still in the queue: the others have ended by now
            work.match.release()
        close_cache(self._runtime.events, self._cache, under_way)

    async def _listen(self, transfers: asyncio.TaskGroup) -> None:
        while True:
            sender, message = await self._runtime.mailbox.receive()
            match message:
                case Assign():
                    self._take(message)
                case Matched(req, blocks):
                    self._match(req, sender, blocks)
                case Cancel(req):
                    self._cancel(req)
                case Lost(name):
                    self._lose(name, transfers)
                case Departed():
                    self._lose(sender, transfers)
                case Found(name):
                    self._find(name)
                case Seek():
                    self._begin_anew()
                case _:
                    raise AgentError("obey a control message", sender, type(message).__name__)

    def _match(self, req: int, sender: str, blocks: int) -> None:
        work = self._works.get(req)
        if work is not None:
            matched = work.relayed if sender == work.assign.relay else work.matched
            if not matched.done():
                matched.set_result(blocks)
        elif req not in self._assigned:
            self._early[req, sender] = blocks

    def _cancel(self, req: int) -> None:
        work = self._works.get(req)
        if work is None:
            return
        if work.sending is not None:
            work.sending.cancel()
            return
        self._schedule.cancel(req)
        self._forget(work)

    def _lose(self, name: str, transfers: asyncio.TaskGroup) -> None:
        """Nothing goes to a lost receiver any more; the other path goes on."""
        self._runtime.mailbox.drop(name)
        sender = self._senders.get(name)
        if sender is not None:
            transfers.create_task(sender.close())
        for work in self._works.values():
            if work.assign.decode == name and not work.matched.done():
                work.matched.set_result(work.prompt.blocks)  # it wants nothing
            if work.assign.relay == name and not work.relayed.done():
                work.relayed.set_result(work.prompt.blocks)

    def _held_up(self, req: int) -> None:
        """The WAN stalls: RLD may stay longer, because MD will be late."""
        work = self._works.get(req)
        if work is not None and work.assign.relay and work.assign.decode:
            self._runtime.mailbox.send(work.assign.relay, HeldUp(req))

    def _find(self, name: str) -> None:
        """A receiver that was lost is back."""
        self._runtime.mailbox.restore(name)
        if name in self._senders:
            self._senders[name].reopen()

    def _begin_anew(self) -> None:
        """All others have given this agent up: so does it everything that it was asked."""
        for req in tuple(self._works):
            self._cancel(req)
        self._early.clear()
        reappear(self._runtime)
        for sender in self._senders.values():
            sender.reopen()

    def _take(self, assign: Assign) -> None:
        self._assigned.add(assign.req)
        full = self._schedule.jobs >= self._serving.admission.prefill_requests
        if full and self._runtime.config.guards(Defect.ADMISSION_CONTROL):
            for name in (assign.decode, assign.relay):
                self._early.pop((assign.req, name), None)
                if name:
                    self._runtime.mailbox.send(name, Failure(assign.req, "prefill-full"))
            self._runtime.mailbox.send(self._router, Note(assign.req, "served", 0))
            return
        prompt = read_prompt(
            self._prompts, self._runtime.config.shape, assign.req, assign.segments, assign.lengths
        )
        match = self._cache.match(prompt.keys)
        emit_matched(self._runtime.events, self._cache, assign.req, match.blocks, prompt)
        self._runtime.mailbox.send(self._router, Note(assign.req, "matched", match.blocks))
        loop = asyncio.get_running_loop()
        matched, relayed = loop.create_future(), loop.create_future()
        if not self._serving.caches.relay_bytes:
            relayed.set_result(0)
        for name, future in ((assign.decode, matched), (assign.relay, relayed)):
            if (assign.req, name) in self._early:
                future.set_result(self._early.pop((assign.req, name)))
        work = Work(assign, prompt, match, matched, relayed)
        self._works[assign.req] = work
        cached = match.blocks * self._runtime.config.shape.block_tokens
        self._schedule.submit(Job(assign.req, prompt.input_tokens - cached, cached))
        work.came_ns = self._runtime.events.emit(Kind.PREFILL_QUEUED, req=assign.req)
        self._busy.set()

    async def _compute(self, transfers: asyncio.TaskGroup) -> None:
        hardware = self._runtime.config.hardware
        while True:
            chunks = self._schedule.plan()
            if not chunks:
                self._busy.clear()
                await self._busy.wait()
                continue
            for chunk in chunks:
                self._start(self._works[chunk.identity])
            ending = [chunk.identity for chunk in chunks if chunk.last]
            computed = await self._runtime.clock.during(
                prefill_pass_ns(hardware, [(chunk.tokens, chunk.context) for chunk in chunks]),
                partial(self._compute_rows, ending),
            )
            for req in self._schedule.complete():
                work = self._works[req]
                self._finish(work, *computed[req])
                work.sending = transfers.create_task(self._serve(work))
                # not in ``_serve``: a task that is cancelled before it began runs nothing
                work.sending.add_done_callback(partial(self._served, work))

    def _start(self, work: Work) -> None:
        if work.started:
            return
        work.started = True
        cached = work.match.blocks * self._runtime.config.shape.block_tokens
        uncached = work.prompt.input_tokens - cached
        self._runtime.events.emit(
            Kind.PREFILL_START, req=work.assign.req, uncached=uncached, context=cached,
            real_tokens=uncached // self._ratio,
        )  # fmt: skip

    def _compute_rows(self, ending: Sequence[int]) -> dict[int, tuple[Kv, Kv]]:
        """The real rows of prompts whose last chunk this pass is: what was held, what is new."""
        found: dict[int, tuple[Kv, Kv]] = {}
        for req in ending:
            work = self._works.get(req)
            if work is not None:  # else it was cancelled
                held = join(Kv(self._model.layout), work.match.values, self._block)
                tokens = work.prompt.tokens[work.match.blocks * self._block :]
                found[req] = held, self._model.prefill(tokens, held)
                self._runtime.progress()
        return found

    def _finish(self, work: Work, held: Kv, rows: Kv) -> None:
        """Lets the prompt's rows enter the cache."""
        fresh = pieces(rows, self._block)
        work.parts = (*work.match.values, *fresh)
        published = self._cache.publish(work.prompt.keys, work.parts)
        emit_published(self._runtime.events, self._cache, work.assign.req, published)
        if not isinstance(published, Published):
            self._note(work, "unkept", work.match.blocks)
        self._runtime.events.emit(Kind.PREFILL_END, req=work.assign.req)
        self._note(work, "prefilled", 0)
        if self._serving.first_token is Who.PREFILL:
            self._first(work, held.join(rows))

    def _first(self, work: Work, kv: Kv) -> None:
        """Position 0: the logits of the last prompt token are there, no time passes."""
        request, last = request_of(work.assign.req), work.prompt.tokens[-1]
        step = Step(kv.prefix(kv.length - 1), (last,), request)
        token = self._model.decode([step])[0].token
        first = FirstToken(work.assign.req, token, work.assign.relay)
        for name in (work.assign.client, work.assign.relay, work.assign.decode):
            if name:
                self._runtime.mailbox.send(name, first)

    async def _serve(self, work: Work) -> None:
        """Both paths at once; the lock on the cached blocks is held until both have ended."""
        async with asyncio.TaskGroup() as paths:
            if work.assign.relay:
                paths.create_task(self._send_missing(work, work.assign.relay, work.relayed))
            if work.assign.decode:
                paths.create_task(self._send_missing(work, work.assign.decode, work.matched))
        self._runtime.progress()

    def _served(self, work: Work, _: asyncio.Task[None]) -> None:
        self._forget(work)

    def _forget(self, work: Work) -> None:
        """The end of a work, whole or cut: MD must not wait for what will not come."""
        work.match.release()
        del self._works[work.assign.req]
        if work.owed and work.assign.decode:
            self._fail(work, work.assign.decode, "cancelled")
        self._note(work, "served", 0)

    async def _send_missing(self, work: Work, peer: str, matched: asyncio.Future[int]) -> None:
        """One path: what the receiver lacks, once it has said what it holds."""
        try:
            async with asyncio.timeout(self._runtime.clock.seconds(self._serving.match_timeout_ns)):
                held = await matched
        except TimeoutError:
            self._fail(work, peer, "not-matched")
        else:
            if held < work.prompt.blocks:
                await self._send(work, peer, held)
        if peer == work.assign.decode:
            work.owed = False

    async def _send(self, work: Work, peer: str, held: int) -> None:
        """The blocks behind the first ``held`` to one receiver."""
        parts = work.parts[held:]
        size = len(parts) * self._block_bytes + self._runtime.config.shape.fixed_bytes
        try:
            receipt = await self._senders[peer].send(
                OutgoingTransfer(
                    request=work.assign.req,
                    epoch=0,
                    blocks=block_bytes(parts, self._block),
                    wire_bytes=size,
                    due_ns=work.came_ns,
                )
            )
        except TestbedError as error:
            self._fail(work, peer, reason_of(error))
            return
        if peer == work.assign.decode:
            self._note(work, "transferred", receipt.duration_ns)

    def _note(self, work: Work, what: str, value: int) -> None:
        self._runtime.mailbox.send(self._router, Note(work.assign.req, what, value))

    def _fail(self, work: Work, peer: str, reason: str) -> None:
        """The receiver decides what becomes of the answer: the other one may give it alone."""
        self._runtime.mailbox.send(peer, Failure(work.assign.req, reason))
