"""Sends and receives background traffic: bulk TCP flows, all the time or in seeded bursts.

Both ends of every flow are here, in one process and one loop, with sockets that were opened in
their nodes' namespaces: the packets go the way of all others, through the same queues. Received
bytes are dropped inside the kernel. Nothing here is about namespaces or processes.
"""

from __future__ import annotations

import random
import selectors
import socket
import struct
import time
from collections.abc import Iterator, Sequence

_CHUNK = bytes(1 << 18)
_LOW_WATER = 1 << 18
_AT_ONCE = struct.pack("=ii", 1, 0)
"""SO_LINGER: closing sends RST and leaves no TIME_WAIT."""
_FOR_EVER = 2**62


def turns(seed: int, flow: int, on_ns: int, off_ns: int) -> Iterator[tuple[bool, int]]:
    """Whether a flow sends, and for how long in ns, again and again.

    Bursts and gaps are exponential around their means; with a mean of 0 it sends for ever.
    """
    draw = random.Random(f"{seed} {flow}")
    while on_ns and off_ns:
        yield True, max(1, round(draw.expovariate(1 / on_ns)))
        yield False, max(1, round(draw.expovariate(1 / off_ns)))
    yield True, _FOR_EVER


class Bulk:
    """The loop over all flows of one sender and their receiver."""

    def __init__(
        self,
        listener: socket.socket,
        senders: Sequence[socket.socket],
        schedules: Sequence[Iterator[tuple[bool, int]]],
    ) -> None:
        """Sockets are not blocking, and the senders are about to be connected to the listener."""
        self.delivered = 0
        self._listener = listener
        self._wait = selectors.DefaultSelector()
        self._wait.register(listener, selectors.EVENT_READ, "listener")
        self._flows = list(zip(senders, schedules, strict=True))
        now = time.monotonic_ns()
        self._until: list[int] = []
        self._open: list[socket.socket] = [listener, *senders]
        for number, (sender, schedule) in enumerate(self._flows):
            _, length = next(schedule)
            self._until.append(now + length)
            self._wait.register(sender, selectors.EVENT_WRITE, number)

    def run(self, stop: int) -> None:
        """Until something can be read from the descriptor ``stop``; then all ends with RST."""
        self._wait.register(stop, selectors.EVENT_READ, "stop")
        running = True
        while running:
            left_ns = min(self._until) - time.monotonic_ns()
            timeout = None if left_ns > _FOR_EVER // 2 else max(0, left_ns) / 1e9
            for key, _ in self._wait.select(timeout):
                if key.data == "stop":
                    running = False
                elif key.data == "listener":
                    self._accept()
                elif key.data == "receiver":
                    self._receive(key.fileobj)  # type: ignore[arg-type]
                else:
                    self._send(key.data)
            self._turn()
        self._wait.close()
        for one in self._open:
            if one is not self._listener:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            one.close()

    def _accept(self) -> None:
        taken, _ = self._listener.accept()
        taken.setblocking(False)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _LOW_WATER)
        self._open.append(taken)
        self._wait.register(taken, selectors.EVENT_READ, "receiver")

    def _receive(self, taken: socket.socket) -> None:
        try:
            while size := _discard(taken):
                self.delivered += size
            self._wait.unregister(taken)
        except BlockingIOError:
            return
        except OSError:
            self._wait.unregister(taken)

    def _send(self, number: int) -> None:
        sender = self._flows[number][0]
        try:
            while sender.send(_CHUNK) == len(_CHUNK):
                pass
        except BlockingIOError:
            return
        except OSError:  # what it met broke it: a fault of the run may well
            self._wait.unregister(sender)
            self._until[number] = _FOR_EVER

    def _turn(self) -> None:
        """Flows whose burst or gap is over go on with the next."""
        now = time.monotonic_ns()
        for number, (sender, schedule) in enumerate(self._flows):
            while self._until[number] <= now:
                sends, length = next(schedule)
                self._until[number] += length
                if sends:
                    self._wait.register(sender, selectors.EVENT_WRITE, number)
                else:
                    self._wait.unregister(sender)


def _discard(taken: socket.socket) -> int:
    """Takes what is there without copying it; 0 at the end of the stream."""
    return taken.recv_into(_SINK, len(_SINK), socket.MSG_TRUNC)


_SINK = bytearray(1 << 20)
"""Never written to: the kernel only counts against its size."""
