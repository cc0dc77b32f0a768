"""One connection's receiving side: satisfies the parser from the socket, with few wake-ups.

In the guest a wake-up costs far more than a copy. So the kernel is told (SO_RCVLOWAT)
not to wake us before the low water mark or the rest of the transfer is there, and
padding is dropped inside the kernel (MSG_TRUNC), whatever its length, in one call.
"""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import socket
from collections.abc import Generator
from typing import Protocol

from testbed_agents.transport import frame
from testbed_agents.transport.connection import reset
from testbed_agents.transport.epochs import Epochs
from testbed_agents.transport.fault import Fault, FrameError
from testbed_agents.transport.parser import (
    STRICT,
    Begun,
    Complete,
    Landed,
    Read,
    Rules,
    Skip,
    Step,
    read_hello,
    read_transfers,
)
from testbed_agents.transport.part import Part
from testbed_agents.transport.transfer import IncomingTransfer

_VOID = mmap.mmap(-1, 64 * 1024 * 1024, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
_VOID_VIEW = memoryview(_VOID)
"""Address space that MSG_TRUNC pretends to fill; never touched, so it holds no memory."""
_NOTHING = memoryview(b"")


class Owner(Protocol):
    """What an inlet tells its receiver."""

    def begun(self, inlet: Inlet, header: frame.Header, part: Part | None) -> bool:
        """A transfer, or a part of one, has begun. May raise FrameError.

        False: nothing more is read until ``proceed``.
        """

    def landed(self, chunk: Landed) -> None:
        """A chunk's blocks are here."""

    def complete(self, inlet: Inlet, transfer: IncomingTransfer, part: Part | None) -> None:
        """A transfer is complete; the owner calls ``answer`` later."""

    def ended(self, inlet: Inlet, error: FrameError | None) -> None:
        """The connection is closed; ``error`` says why unless it was idle."""


class Inlet:
    """Reads one accepted connection until it ends."""

    def __init__(
        self,
        connection: socket.socket,
        receiver: str,
        verify_all: bool,
        low_water: int,
        epochs: Epochs,
        owner: Owner,
        rules: Rules = STRICT,
    ) -> None:
        self._socket = connection
        self._low_water = low_water
        self._mark = 1
        self._owner = owner
        self._buffer = memoryview(bytearray())
        self._got = 0
        self._open = True
        self.loop = asyncio.get_running_loop()
        self.hello: frame.Hello | None = None
        self.current: frame.Header | None = None
        """The transfer that is arriving or being applied."""
        self.blocks_here = 0
        """Blocks of it, or of its part, that have arrived."""
        self._waits = False
        self._held = False
        self._paused: list[frame.Header] = []
        """Transfers between two chunks of which ``current`` came."""
        self._parser = self._parse(receiver, verify_all, epochs, rules)
        self._need: Read | Skip | None = None
        """None while a complete transfer waits for its answer."""
        self._feed(None)
        self.loop.add_reader(connection, self._readable)

    def answer(self, ack: frame.Ack) -> None:
        """Acknowledge the complete transfer and go on reading."""
        if not self._open:
            return
        self.current = self._paused.pop() if self._paused else None
        try:
            self._send(ack)
        except OSError as error:
            self.end(FrameError(Fault.CONNECTION_LOST, "acknowledgement", str(error)))
            return
        self._feed(_NOTHING)
        self._set_mark()

    def hold(self, held: bool) -> None:
        """Stop reading, or go on."""
        self._held = held
        self._listen()

    def proceed(self) -> None:
        """The transfer that had to wait may go on."""
        self._waits = False
        self._feed(_NOTHING)
        self._set_mark()
        self._listen()

    def _listen(self) -> None:
        if not self._open:
            return
        if self._held or self._waits:
            self.loop.remove_reader(self._socket)
        else:
            self.loop.add_reader(self._socket, self._readable)

    def stop_sender(self) -> None:
        """Say that nobody wants the transfer under way; what still comes is read as before."""
        if self._open and self.current is not None:
            ack = frame.Ack(
                frame.Status.ABORTED, self.current.request, self.current.epoch, "nobody wants it"
            )
            with contextlib.suppress(OSError):  # then its sender learns of it at its deadline
                self._send(ack)

    def read_out(self) -> None:
        """Take whatever has arrived, however little; it may end the connection."""
        if self._open and not self._held and not self._waits:
            self._readable()

    @property
    def under_way(self) -> tuple[frame.Header, ...]:
        """All transfers that are not acknowledged."""
        return (*self._paused, *(() if self.current is None else (self.current,)))

    def end(self, error: FrameError | None) -> None:
        """Close; after an error the sender is told the reason first."""
        if not self._open:
            return
        self._open = False
        self.loop.remove_reader(self._socket)
        if error is None:
            self._socket.close()
        else:
            if error.reason is not Fault.CONNECTION_LOST:
                request, epoch = 0, 0
                if self.current is not None:
                    request, epoch = self.current.request, self.current.epoch
                # where it cannot be sent, the sender learns of the failure from the reset
                full = error.reason is Fault.FULL
                status = frame.Status.FULL if full else frame.Status.BROKEN
                with contextlib.suppress(OSError):
                    self._send(frame.Ack(status, request, epoch, error.cause))
            reset(self._socket)
        self._parser.close()
        self._owner.ended(self, error)

    def _parse(
        self, receiver: str, verify_all: bool, epochs: Epochs, rules: Rules
    ) -> Generator[Step, memoryview, None]:
        self.hello = yield from read_hello(receiver, verify_all)
        self._send(frame.Ack(frame.Status.APPLIED, 0, 0))
        yield from read_transfers(self.hello, epochs, rules)

    def _readable(self) -> None:
        try:
            if self._need is None:
                self._check_silence()
            while self._open and self._need is not None and self._receive(self._need):
                self._feed(self._buffer[: self._got] if self._buffer else _NOTHING)
            if self._open:
                self._set_mark()
        except FrameError as error:
            self.end(error)
        except OSError as error:
            self.end(FrameError(Fault.CONNECTION_LOST, "data connection", str(error)))

    def _receive(self, need: Read | Skip) -> bool:
        """Take what is there; True when the need is satisfied."""
        left = need.count - self._got
        try:
            if isinstance(need, Skip):
                most = min(left, len(_VOID_VIEW))
                count = self._socket.recv_into(_VOID_VIEW, most, socket.MSG_TRUNC)
            else:
                count = self._socket.recv_into(self._buffer[self._got :])
        except BlockingIOError:
            return False
        if count == 0:
            self._peer_closed()
            return False
        self._got += count
        return count == left

    def _feed(self, data: memoryview | None) -> None:
        """Give the parser what it asked for and note what it needs next."""
        step = next(self._parser) if data is None else self._parser.send(data)
        while isinstance(step, Begun | Landed):
            if isinstance(step, Landed):
                self.blocks_here = step.first + len(step.blocks)
                self._owner.landed(step)
            elif not self._begin(step):
                self._waits, self._need, self._buffer = True, None, _NOTHING
                self._listen()
                return
            step = self._parser.send(_NOTHING)
        self._got = 0
        if isinstance(step, Complete):
            self._need = None
            self._buffer = _NOTHING
            self._owner.complete(self, step.transfer, step.part)
            return
        self._need = step
        # a fresh buffer: the parser keeps views of the substance in it
        self._buffer = memoryview(bytearray(step.count)) if isinstance(step, Read) else _NOTHING

    def _begin(self, step: Begun) -> bool:
        if self.current is not None:
            self._paused.append(self.current)
        self.current = step.header
        self.blocks_here = 0
        return self._owner.begun(self, step.header, step.part)

    def _set_mark(self) -> None:
        """Wake us when the low water mark or all that is known to follow has arrived."""
        ahead = 1 if self._need is None else self._need.ahead - self._got
        mark = max(1, min(self._low_water, ahead))
        if mark != self._mark:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, mark)
            self._mark = mark

    def _check_silence(self) -> None:
        """While a transfer is being applied its sender has nothing to say."""
        try:
            data = self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return
        if data:
            raise FrameError(Fault.UNEXPECTED, "data connection", "bytes before the answer")
        self._peer_closed()

    def _peer_closed(self) -> None:
        if self.current is None and self._got == 0:
            self.end(None)
        else:
            self.end(FrameError(Fault.TRUNCATED, "data connection", "closed within a transfer"))

    def _send(self, ack: frame.Ack) -> None:
        data = frame.encode_ack(ack)
        if self._socket.send(data) != len(data):
            raise BlockingIOError("the sender does not read its acknowledgements")
