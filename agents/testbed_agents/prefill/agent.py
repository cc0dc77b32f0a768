"""The prefill instance (P): first come, first served; real KV computed, then sent.

::

    Submit ─▶ queue ─▶ [prefill: profile time on the clock, real model on the CPU] ─▶ pool ─▶ MD
                                                    └▶ Announce (control) ─────────────────▶ MD

Only the suffix behind the shared base document is computed and sent: its blocks
are what the receiver does not have yet.
"""

from __future__ import annotations

import asyncio
from functools import partial

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.errors import AgentError, TestbedError
from testbed_agents.control.mailbox import Departed
from testbed_agents.control.message import Announce, Failed, Submit
from testbed_agents.hardware import prefill_ns
from testbed_agents.model.load import load_model, load_prompts
from testbed_agents.prefill.server import PrefillServer
from testbed_agents.runtime import Runtime, until_stopped
from testbed_agents.transport import OutgoingTransfer, opened, reason_of, senders_to


class PrefillAgent:
    """State of one P. One request computes at a time; transfers overlap freely."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        config = runtime.config
        self._ratio = config.shape.ratio
        self._block = config.shape.block_tokens // config.shape.ratio
        self._model = load_model(config.model)
        self._model.watch(runtime.layer_progress())
        self._prompts = load_prompts(config.model, config.seed)
        document = self._prompts.base_document(config.prompt_tokens // self._ratio)
        self._base = self._model.prefill(document)
        runtime.progress()
        self._queue: asyncio.Queue[tuple[Submit, int]] = asyncio.Queue()
        """With the time at which each came: one service level makes the earliest due first."""
        self._senders = senders_to(config, runtime.clock, runtime.events, Role.DECODE)
        runtime.trouble.senders.update(self._senders)

    async def run(self) -> None:
        """Serves until the lab says stop."""
        await self._runtime.barrier()
        async with asyncio.TaskGroup() as transfers, opened(self._senders.values()):
            await until_stopped(self._runtime.stop, self._listen(), self._compute(transfers))

    async def _listen(self) -> None:
        while True:
            sender, message = await self._runtime.mailbox.receive()
            if isinstance(message, Departed):
                continue  # it takes nothing, and is sent nothing any more
            if not isinstance(message, Submit):
                raise AgentError("obey a control message", sender, type(message).__name__)
            came_ns = self._runtime.events.emit(Kind.PREFILL_QUEUED, req=message.req)
            self._queue.put_nowait((message, came_ns))

    async def _compute(self, transfers: asyncio.TaskGroup) -> None:
        while True:
            job, came_ns = await self._queue.get()
            if job.decode not in self._senders:
                self._refuse(job, "unknown-decode-instance")
                continue
            uncached = job.input_tokens - job.hit_tokens
            self._runtime.mailbox.send(
                job.decode,
                Announce(
                    job.req, job.input_tokens, job.hit_tokens, job.output_tokens,
                    job.blocks, job.client,
                ),
            )  # fmt: skip
            self._runtime.events.emit(
                Kind.PREFILL_START, req=job.req, uncached=uncached, context=job.hit_tokens,
                real_tokens=uncached // self._ratio,
            )  # fmt: skip
            blocks = await self._runtime.clock.during(
                prefill_ns(self._runtime.config.hardware, uncached, job.hit_tokens),
                partial(self._blocks, job),
            )
            self._runtime.events.emit(Kind.PREFILL_END, req=job.req)
            if blocks:
                transfers.create_task(self._transfer(job, blocks, came_ns))

    def _blocks(self, job: Submit) -> tuple[memoryview, ...]:
        """Real KV of the request's uncached suffix, cut into cache blocks."""
        hit, length = job.hit_tokens // self._ratio, job.input_tokens // self._ratio
        if hit == length:
            return ()
        tokens = self._prompts.prompt(job.req, hit, length)
        rows = self._model.prefill(tokens[hit:], self._base.prefix(hit))
        self._runtime.progress()
        return rows.blocks(self._block)

    async def _transfer(self, job: Submit, blocks: tuple[memoryview, ...], came_ns: int) -> None:
        transfer = OutgoingTransfer(job.req, 0, blocks, job.wire_bytes, due_ns=came_ns)
        try:
            await self._senders[job.decode].send(transfer)
        except TestbedError as error:
            self._refuse(job, reason_of(error))
        self._runtime.progress()

    def _refuse(self, job: Submit, reason: str) -> None:
        self._runtime.mailbox.send(job.client, Failed(job.req, reason))


async def prefill_main(runtime: Runtime) -> None:
    """Entry point of a prefill agent."""
    serving = runtime.config.serving
    if serving is None:
        await PrefillAgent(runtime).run()
    else:
        await PrefillServer(runtime, serving).run()
