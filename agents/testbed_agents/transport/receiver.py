"""The receiver of KV: accepts connections, verifies, applies, and only then acknowledges."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from testbed.contract.agent import AgentConfig
from testbed.contract.defect import Defect
from testbed.contract.event import EventLog, Kind
from testbed.errors import AgentError, TestbedError
from testbed_agents.clock import AgentClock
from testbed_agents.transport import frame
from testbed_agents.transport.applied import Applied
from testbed_agents.transport.assembly import Assemblies
from testbed_agents.transport.connection import tuned_socket
from testbed_agents.transport.epochs import Epochs
from testbed_agents.transport.fault import Fault, FrameError
from testbed_agents.transport.inlet import Inlet
from testbed_agents.transport.landings import Freed, Landings
from testbed_agents.transport.parser import Landed, Rules
from testbed_agents.transport.part import Part
from testbed_agents.transport.spare import SpareDescriptor, is_none_left
from testbed_agents.transport.transfer import INCREMENT, IncomingTransfer
from testbed_agents.transport.withdrawals import Withdrawals

Handler: TypeAlias = Callable[[IncomingTransfer], Awaitable[None]]

_BACKLOG = 4096
_LISTEN_AGAIN_S = 0.1
MAX_CONNECTIONS = 16_384
"""Connections beyond this are closed unanswered."""


class KvReceiver:
    """All data connections to this agent. ``bind``, then ``serve`` until cancelled."""

    def __init__(self, config: AgentConfig, clock: AgentClock, log: EventLog) -> None:
        self._config = config
        self._clock = clock
        self._log = log
        self._epochs = Epochs()
        self._applied = Applied()
        self._parts: Assemblies[Inlet] = Assemblies()
        self._inlets: dict[Inlet, None] = {}  # in order of acceptance
        self._deadlines: dict[Inlet, asyncio.TimerHandle] = {}
        self._listener: socket.socket | None = None
        self._spare = SpareDescriptor()
        self._work: asyncio.TaskGroup | None = None
        self._handler: Handler | None = None
        self._held = False
        self._landings: Landings[Inlet] = Landings(config.guard.pages, log)
        self._out = Withdrawals(
            config, clock, self._epochs, self._parts, self._inlets, self._landings
        )
        self._rules = Rules(
            config.guards(Defect.DIGEST_CHECK), config.guards(Defect.BLOCK_COUNT), lands=True
        )
        self._refrains = False
        if config.tcp.receive_low_water > config.tcp.receive_buffer // 2:
            raise AgentError(
                "set the low water mark", f"{config.tcp.receive_low_water} bytes",
                "more than half of the receive buffer: the connection could stall",
                "lower tcp.receive_low_water",
            )  # fmt: skip

    def bind(self) -> None:
        """Listen; nothing is accepted before ``serve``. Raises AgentError, OSError."""
        listener = tuned_socket(self._config.tcp)  # accepted connections inherit its options
        try:
            listener.bind((self._config.address, self._config.data_port))
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
        self._listener = listener
        self._spare.take()

    async def serve(self, handler: Handler) -> None:
        """Pass every verified transfer to ``handler``; its return is the acknowledgement.

        A TestbedError raised by the handler refuses that transfer; anything else ends
        ``serve`` and propagates.
        """
        if self._listener is None:
            self.bind()
        listener = self._listener
        if listener is None:
            raise AgentError("serve KV", self._config.node, "not listening")
        self._handler = handler
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.TaskGroup() as self._work:
                if not self._refrains:
                    loop.add_reader(listener, self._accept, listener)
                await loop.create_future()  # until cancelled
        finally:
            loop.remove_reader(listener)
            self._work = None
            await self.close()

    async def close(self) -> None:
        """Close everything; an unfinished transfer is never acknowledged."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            self._spare.give_back()
        self._out.close()
        for inlet in tuple(self._inlets):
            inlet.end(None)

    def hold(self, held: bool) -> None:
        """Reads nothing from any connection while ``held``; their windows close."""
        self._held = held
        for inlet in tuple(self._inlets):
            inlet.hold(held)

    def abort(self, request: int) -> None:
        """Nobody wants the request's KV any more: what is arriving ends, and its pages come back.

        Its sender is told, and its pages are free once it has stopped. Without pages nothing has
        to be given back: what arrives is refused in the end.
        """
        self._out.abort(request)

    def refrain(self, backlog: int | None) -> None:
        """Accepts nothing, and lets ``backlog`` + 1 wait in the kernel; None goes on accepting."""
        if self._listener is None:
            raise AgentError("stop accepting", self._config.node, "not listening")
        # listen(2) on a listening socket only changes the length of its queue
        self._listener.listen(_BACKLOG if backlog is None else backlog)
        self._refrains = backlog is not None
        loop = asyncio.get_running_loop()
        if self._refrains:
            loop.remove_reader(self._listener)
        elif self._work is not None:
            loop.add_reader(self._listener, self._accept, self._listener)

    def begun(self, inlet: Inlet, header: frame.Header, part: Part | None) -> bool:
        """Called by an inlet when a transfer, or a part of one, starts to arrive."""
        hello = inlet.hello
        if hello is None:
            raise FrameError(Fault.BAD_HELLO, "data connection", "a transfer before the hello")
        key, size, blocks = (header.request, header.epoch), header.wire_bytes, header.blocks
        for older in self._parts.older(*key) if self._parts else ():
            self._out.fail(older)
        if header.epoch % INCREMENT:
            self._out.supersede(key)
        self._out.take_turn(key)
        first = part is None or self._parts.begin(key, part, inlet)
        if part is not None:
            size, blocks = part.wire_bytes, part.blocks
        if first:
            self._log.emit(
                Kind.KV_BEGIN, size, req=header.request, peer=hello.sender,
                conn=hello.connection, blocks=blocks,
            )  # fmt: skip
        self._expect(inlet)
        patient = self._config.guards(Defect.RETRY_BUDGET)
        return self._landings.begin(key, blocks, inlet, patient)

    def landed(self, chunk: Landed) -> None:
        """Called by an inlet when a chunk's blocks are here: they go into their pages."""
        key = (chunk.header.request, chunk.header.epoch)
        before = 0 if chunk.part is None else chunk.part.first
        self._landings.write(key, before + chunk.first, chunk.blocks)

    def complete(self, inlet: Inlet, transfer: IncomingTransfer, part: Part | None) -> None:
        """Called by an inlet when every byte has arrived and agrees.

        Nothing is handed on before the last part of a transfer is there; until then the others
        keep their deadlines.
        """
        inlets: tuple[Inlet, ...] = (inlet,)
        key = (transfer.request, transfer.epoch)
        if key in self._out.aborted:
            inlet.end(None)
            return
        if part is not None:
            if key not in self._parts:
                raise FrameError(Fault.PART_LOST, f"request {key[0]}", "another part failed")
            whole = self._parts.complete(key, part, transfer)
            if whole is None:
                if part.in_turn:
                    self._parts.let_go(key, part)
                    self._forget(inlet)
                    inlet.answer(frame.Ack(frame.Status.APPLIED, *key))
                    self._out.await_turn(inlet, key)
                return
            inlets, transfer = whole.holders, whole.transfer
        for one in inlets:
            self._forget(one)
        transfer = replace(transfer, blocks=self._landings.views(key, transfer.blocks))
        self._out.applying.add(key)
        if self._work is not None and self._handler is not None:
            self._work.create_task(self._apply(inlets, transfer, self._handler))

    def ended(self, inlet: Inlet, error: FrameError | None) -> None:
        """Called by an inlet when its connection is closed."""
        self._forget(inlet)
        self._inlets.pop(inlet, None)
        for header in inlet.under_way:
            if error is not None and error.reason is not Fault.PART_LOST:
                self._log.emit(Kind.KV_REFUSED, req=header.request, reason=error.cause)
            self._out.ended(inlet, header, error)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                if not is_none_left(error):
                    raise
                self._turn_away(listener)
                return
            connection.setblocking(False)
            if len(self._inlets) >= MAX_CONNECTIONS:
                connection.close()
                continue
            inlet = Inlet(
                connection, self._config.node, self._config.verify == "all",
                self._config.tcp.receive_low_water, self._epochs, self, self._rules,
            )  # fmt: skip
            self._inlets[inlet] = None
            self._expect(inlet)
            if self._held:
                inlet.hold(True)

    def _turn_away(self, listener: socket.socket) -> None:
        """No descriptor is left: refuse who waits, or listen no more for a while."""
        guarded = self._config.guards(Defect.DESCRIPTOR_RESERVE)
        if guarded and self._spare.turn_away(listener):
            return
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)  # it stays readable: we would turn for ever
        if guarded:
            loop.call_later(_LISTEN_AGAIN_S * self._clock.slow, self._listen_again, listener)

    def _listen_again(self, listener: socket.socket) -> None:
        if self._work is not None and listener is self._listener:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _expect(self, inlet: Inlet) -> None:
        """Something must be complete within the transfer's time: the hello or a transfer."""
        self._forget(inlet)
        if not self._config.guards(Defect.TRANSFER_DEADLINE):
            return
        loop = inlet.loop
        late = loop.time() + self._clock.seconds(self._config.pool.transfer_timeout_ns)
        self._deadlines[inlet] = loop.call_at(late, self._overdue, inlet)

    def _forget(self, inlet: Inlet) -> None:
        deadline = self._deadlines.pop(inlet, None)
        if deadline is not None:
            deadline.cancel()

    def _overdue(self, inlet: Inlet) -> None:
        self._deadlines.pop(inlet, None)
        inlet.read_out()  # what is there may say what is missing
        if inlet.hello is None:
            inlet.end(FrameError(Fault.TIMEOUT, "data connection", "no hello in time"))
        for header in inlet.under_way:
            cause = f"not complete in time: {inlet.blocks_here} of {header.blocks} blocks came"
            self._out.give_up(inlet, (header.request, header.epoch), Fault.TIMEOUT, cause)

    async def _apply(
        self, inlets: tuple[Inlet, ...], transfer: IncomingTransfer, handler: Handler
    ) -> None:
        earlier = self._applied.begin(transfer)
        if earlier is None:
            reason = await self._handle(transfer, handler)
            self._applied.end(transfer, reason)
        else:
            reason = await asyncio.shield(earlier)
        status = frame.Status.REFUSED if reason else frame.Status.APPLIED
        key = (transfer.request, transfer.epoch)
        self._out.applying.discard(key)
        self._out.aborted.discard(key)
        self._out.go_on(self._landings.free(key, Freed.REFUSED if reason else Freed.APPLIED))
        for inlet in inlets:
            inlet.answer(frame.Ack(status, transfer.request, transfer.epoch, reason))
            if inlet.current is not None and inlet in self._inlets:
                self._expect(inlet)  # the transfer that this one came between goes on

    async def _handle(self, transfer: IncomingTransfer, handler: Handler) -> str:
        """Returns why it was refused; "" where it was applied."""
        try:
            await handler(transfer)
        except TestbedError as error:
            self._log.emit(Kind.KV_REFUSED, req=transfer.request, reason=f"refused: {error.cause}")
            return error.cause
        # what was let pass without a protection is told as well
        passed = {"unequal": transfer.unequal, "missing": transfer.missing}
        self._log.emit(
            Kind.KV_VERIFIED, transfer.wire_bytes, req=transfer.request,
            blocks=len(transfer.blocks), **{name: count for name, count in passed.items() if count},
        )  # fmt: skip
        return ""
