"""One connection's sending side: open, write a transfer, wait for its acknowledgement."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable

from testbed.contract.agent import Peer, Tcp
from testbed_agents.transport import frame
from testbed_agents.transport.connection import bind_late, require_source, reset, tuned_socket
from testbed_agents.transport.fault import Fault, FrameError, TransferError
from testbed_agents.transport.padding import FILE_BYTES, PaddingFile
from testbed_agents.transport.pieces import Gap, Pad, Piece
from testbed_agents.transport.tcp_info import TcpInfo, read_tcp_info

_SIOCOUTQNSD = 0x894B  # <linux/sockios.h>: bytes of the send queue that were never sent
_PAUSE_S = 0.001
"""Wait where the kernel says writable and then takes nothing (memory pressure of TCP):
without it the loop would spin, and a virtual clock would stand still for ever."""


class Lane:
    """A persistent connection to ``peer``. At most one transfer at a time.

    ``on_lost`` is called once when an idle connection is found broken. ``late`` leaves it to
    connect() to take the source port, so that one that rests in TIME_WAIT cannot be had.
    Where no byte is acknowledged for ``stall_s`` (loop time; 0 is no limit) while there is more to
    write, the exchange fails.
    """

    def __init__(
        self,
        hello: frame.Hello,
        source: tuple[str, int],
        peer: Peer,
        tcp: Tcp,
        filler: PaddingFile,
        on_lost: Callable[[int], None],
        late: bool = False,
        stall_s: float = 0.0,
    ) -> None:
        self._hello = hello
        self._source = source
        self._peer = peer
        self._tcp = tcp
        self._filler = filler
        self._on_lost = on_lost
        self._late = late
        self._stall_s = stall_s
        self._socket: socket.socket | None = None
        self._answer: asyncio.Future[frame.Ack] | None = None
        self._room: asyncio.Future[None] | None = None
        self._received = bytearray()
        self._written = 0

    @property
    def usable(self) -> bool:
        """Whether the connection is open as far as we know."""
        return self._socket is not None

    def on_the_wire(self) -> int:
        """Bytes of this exchange that left: written, less what the kernel still has to send."""
        if self._socket is None:
            return 0
        unsent = fcntl.ioctl(self._socket, _SIOCOUTQNSD, bytes(4))
        return self._written - int.from_bytes(unsent, sys.byteorder)

    async def open(self) -> None:
        """Connect and introduce ourselves. Raises OSError or TransferError."""
        loop = asyncio.get_running_loop()
        connection = tuned_socket(self._tcp)
        try:
            if self._late:
                bind_late(connection, self._source)
            else:
                connection.bind(self._source)
            await loop.sock_connect(connection, (self._peer.address, self._peer.data_port))
            if self._late:
                require_source(connection, self._source)
            self._socket = connection
            self._received.clear()
            loop.add_reader(connection, self._readable)
            ack = await self.exchange((frame.encode_hello(self._hello),))
            if ack.status is not frame.Status.APPLIED:
                raise TransferError(Fault.BAD_HELLO, self._peer.name, ack.reason)
        except BaseException:
            self.abort()
            reset(connection)
            raise

    async def exchange(
        self, pieces: Iterable[Piece], gap: Callable[[int], Awaitable[None]] | None = None
    ) -> frame.Ack:
        """Write all pieces and wait for the answer. Raises TransferError.

        At a ``Gap`` ``gap`` is awaited with the bytes that are left; another exchange may take
        place in it.

        After any exception, cancellation included, the stream is in an unknown state:
        the caller must ``abort``.
        """
        if self._socket is None or self._answer is not None:
            raise TransferError(Fault.CONNECTION_LOST, self._peer.name, "no usable connection")
        answer: asyncio.Future[frame.Ack] = asyncio.get_running_loop().create_future()
        self._answer = answer
        before, self._written = self._written, 0
        try:
            await self._write_all(self._socket, pieces, answer, gap)
            return await answer
        except OSError as error:
            self._readable()  # a refusal that came before the reset says more
            if answer.done():
                return answer.result()
            raise TransferError(Fault.CONNECTION_LOST, self._peer.name, str(error)) from error
        finally:
            if answer.done() and not answer.cancelled():
                answer.exception()  # seen: it was raised above or lost to an earlier one
            if self._answer is answer:
                self._answer = None
            self._written = before

    def stalled(self, silent_ms: int) -> None:
        """Its peer has owed an answer for too long: whoever waits for it fails now."""
        cause = f"nothing heard for {silent_ms} ms"
        self._break(TransferError(Fault.STALLED, self._peer.name, cause))

    def tcp_info(self) -> TcpInfo | None:
        """The kernel's view; None once the connection is gone."""
        return None if self._socket is None else read_tcp_info(self._socket)

    def close(self) -> None:
        """Close in order: what was sent arrives, and the source port rests in TIME_WAIT."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    def drop(self, clean: bool) -> bool:
        """Lose the connection, as if something on its way had ended it; False where none is open.

        ``clean`` ends our half, so that the receiver closes the other; else both ends are reset.
        """
        if self._socket is None:
            return False
        if clean:
            with contextlib.suppress(OSError):  # it ended by itself, which is told otherwise
                self._socket.shutdown(socket.SHUT_WR)
        else:
            self._break(TransferError(Fault.CONNECTION_LOST, self._peer.name, "reset"))
        return True

    def abort(self) -> None:
        """Reset and forget the connection; whoever waits on it fails."""
        if self._socket is not None:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._socket)
            loop.remove_writer(self._socket)
            reset(self._socket)
            self._socket = None
            self._fail(TransferError(Fault.CONNECTION_LOST, self._peer.name, "aborted"))

    async def _write_all(
        self,
        connection: socket.socket,
        pieces: Iterable[Piece],
        answer: asyncio.Future[frame.Ack],
        gap: Callable[[int], Awaitable[None]] | None,
    ) -> None:
        for piece in pieces:
            if isinstance(piece, Gap):
                if gap is not None:
                    await self._rest(connection, answer, gap(piece.left_bytes))
            elif isinstance(piece, Pad):
                await self._write(connection, piece.count, None, answer)
            else:
                await self._write(connection, len(piece), memoryview(piece), answer)
            if answer.done():
                return  # refused before everything was sent
        # everything so far was sent with MSG_MORE: let the last bytes go
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)

    async def _rest(
        self,
        connection: socket.socket,
        answer: asyncio.Future[frame.Ack],
        gap: Awaitable[None],
    ) -> None:
        """Let another exchange take place, if one wants to. Raises TransferError."""
        self._answer = None
        try:
            await gap
        finally:
            taken, self._answer = self._answer, answer
            if taken is not None and not taken.done():  # we go, and it is left without a stream
                taken.set_exception(
                    TransferError(Fault.CONNECTION_LOST, self._peer.name, "its holder went")
                )
        if self._socket is not connection:
            raise TransferError(Fault.CONNECTION_LOST, self._peer.name, "lost while it was lent")

    async def _write(
        self,
        connection: socket.socket,
        count: int,
        data: memoryview | None,
        answer: asyncio.Future[frame.Ack],
    ) -> None:
        sent = 0
        waited = False
        before = self._written
        while sent < count and not answer.done():
            try:
                if data is None:
                    most = min(count - sent, FILE_BYTES)
                    sent += os.sendfile(connection.fileno(), self._filler.fd, 0, most)
                else:
                    sent += connection.send(data[sent:], socket.MSG_MORE)
                self._written = before + sent
                waited = False
            except BlockingIOError:
                if waited:
                    await asyncio.sleep(_PAUSE_S)
                await self._wait_for_room(connection)
                waited = True

    async def _wait_for_room(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._room = loop.create_future()
        loop.add_writer(connection, _wake, self._room)
        try:
            await self._moves(connection, self._room)
        finally:
            self._room = None
            if self._socket is connection:
                loop.remove_writer(connection)

    async def _moves(self, connection: socket.socket, room: asyncio.Future[None]) -> None:
        """Wait for room for as long as bytes are acknowledged. Raises TransferError."""
        seen = -1
        while self._stall_s and not room.done():
            acked = read_tcp_info(connection).acked_bytes
            if acked == seen:
                raise TransferError(
                    Fault.TIMEOUT, self._peer.name, "it stalled: no byte was acknowledged in time"
                )
            seen = acked
            await asyncio.wait((room,), timeout=self._stall_s)
        await room

    def _readable(self) -> None:
        if self._socket is None:
            return
        try:
            data = self._socket.recv(frame.ACK_BYTES - len(self._received))
            if not data:
                raise TransferError(
                    Fault.CONNECTION_LOST, self._peer.name, "closed by the receiver"
                )
            self._received += data
            if len(self._received) < frame.ACK_BYTES:
                return
            ack = frame.decode_ack(bytes(self._received))
            self._received.clear()
            if self._answer is None or self._answer.done():
                raise FrameError(Fault.UNEXPECTED, self._peer.name, "an answer to no question")
        except BlockingIOError:
            return
        except (FrameError, TransferError) as error:
            self._break(TransferError(error.reason, self._peer.name, error.detail))
        except OSError as error:
            self._break(TransferError(Fault.CONNECTION_LOST, self._peer.name, str(error)))
        else:
            self._answer.set_result(ack)
            if self._room is not None:
                _wake(self._room)

    def _break(self, error: TransferError) -> None:
        idle = self._answer is None
        self._fail(error)
        self.abort()
        if idle:
            self._on_lost(self._hello.connection)

    def _fail(self, error: TransferError) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
        if self._room is not None:
            _wake(self._room)


def _wake(room: asyncio.Future[None]) -> None:
    if not room.done():
        room.set_result(None)
