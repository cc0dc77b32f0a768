"""RLD's rows on their way to MD (``incremental-kv``): off the device, onto the host, the pool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from testbed.errors import TestbedError
from testbed_agents.handoff.message import Failure
from testbed_agents.hardware import copy_ns
from testbed_agents.relay.guest import Guest
from testbed_agents.runtime import Runtime
from testbed_agents.transport import INCREMENT, KvSender, OutgoingTransfer, opened, reason_of


class Increments:
    """All of them at one RLD.

    Args:
        senders: a pool to every MD; empty in every other mode.
        done: called once for every ``start``, when nothing reads the rows any more.
    """

    def __init__(
        self, runtime: Runtime, senders: dict[str, KvSender], done: Callable[[Guest], None]
    ) -> None:
        self._runtime = runtime
        self._senders = senders
        self._done = done
        self._tasks: asyncio.TaskGroup | None = None
        self._sending: dict[int, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """All pools are open inside; behind it everything has ended."""
        async with asyncio.TaskGroup() as self._tasks, opened(self._senders.values()):
            yield

    def start(self, guest: Guest, rows: int) -> None:
        """Send the first ``rows`` rows behind the prompt's; they are taken at once."""
        shape, begin = self._runtime.config.shape, len(guest.held.prompt.tokens) - 1
        content = guest.held.rows.part(begin, begin + rows).block_bytes(0, rows)
        size = rows * shape.bytes_per_token + shape.fixed_bytes
        transfer = OutgoingTransfer(guest.relay.req, INCREMENT, (content,), size)
        if self._tasks is not None:
            task = self._tasks.create_task(self._send(guest, transfer))
            self._sending[guest.relay.req] = task
            # not in ``_send``: a task that is cancelled before it began runs nothing
            task.add_done_callback(partial(self._ended, guest))

    def cut(self, req: int) -> None:
        """The client left: what is on its way, if anything, goes no further."""
        task = self._sending.get(req)
        if task is not None:
            task.cancel()

    def lose(self, name: str) -> None:
        """Nothing goes to a lost MD any more."""
        sender = self._senders.get(name)
        if sender is not None and self._tasks is not None:
            self._tasks.create_task(sender.close())

    def find(self, name: str) -> None:
        """A lost MD is back."""
        if name in self._senders:
            self._senders[name].reopen()

    async def _send(self, guest: Guest, transfer: OutgoingTransfer) -> None:
        hardware, main = self._runtime.config.hardware, guest.relay.decode
        await self._runtime.clock.spend(copy_ns(hardware, transfer.wire_bytes))
        try:
            await self._senders[main].send(transfer)
        except TestbedError as error:
            self._runtime.mailbox.send(main, Failure(guest.relay.req, reason_of(error)))

    def _ended(self, guest: Guest, _: asyncio.Task[None]) -> None:
        del self._sending[guest.relay.req]
        self._done(guest)
