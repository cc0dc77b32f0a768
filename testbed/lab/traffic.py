"""Background traffic of a fault: a process of ours for each sender, begun and ended by the lab.

It is forked, so that it begins at once under any clock, enters the namespaces of both nodes for a
moment to open its sockets there, and dies with the lab.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from testbed.contract.fault import TrafficFault
from testbed.errors import LabError
from testbed.lab.bulk import Bulk, turns
from testbed.lab.namespace import entered

_PR_SET_PDEATHSIG = 1
_BACKLOG = 128
_ANSWER_S = 5.0
_TOTAL = struct.Struct("=Q")
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Stream:
    """All flows of one sender of a fault."""

    node: str
    source: tuple[str, int]
    """Address, and the port of the first flow."""
    target: tuple[str, int]
    flows: int
    on_ns: int
    off_ns: int
    seed: int


def streams(fault: TrafficFault) -> tuple[Stream, ...]:
    """One a sender."""
    return tuple(
        Stream(
            node=node,
            source=(address, fault.source_port + number * fault.flows),
            target=(fault.to_address, fault.port + number),
            flows=fault.flows,
            on_ns=fault.on_ns,
            off_ns=fault.off_ns,
            seed=fault.seed + number,
        )
        for number, (node, address) in enumerate(
            zip(fault.nodes, fault.source_addresses, strict=True)
        )
    )


class Traffic:
    """One stream, between two network namespaces given by their paths."""

    def __init__(self, stream: Stream, here: str, there: str) -> None:
        self._stream = stream
        self._here, self._there = here, there
        self.pid = 0
        """Of the process, while there is one."""
        self._stop = self._answer = -1
        self._total = 0

    def begin(self, node: str) -> None:
        """Returns when its sockets are open and it is about to connect.

        Raises:
            LabError: a socket cannot be opened there.
        """
        reader, self._stop = os.pipe()
        self._answer, writer = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                os.close(self._stop)
                if os.getppid() == parent:
                    self._work(reader, writer)
                    status = 0
            except OSError as error:
                os.write(writer, b"n" + str(error).encode())
            finally:
                os._exit(status)
        os.close(reader)
        os.close(writer)
        said = self._heard(4_096)
        if said != b"y":
            self._reap()
            raise LabError("send background traffic", node, said[1:].decode() or "no answer")

    def end(self, node: str) -> None:
        """Ends it and takes the number of bytes that arrived.

        Raises:
            LabError: it had ended before.
        """
        with contextlib.suppress(BrokenPipeError):
            # closing is not enough: processes of other senders have it as well
            os.write(self._stop, b"s")
        os.close(self._stop)
        said = self._heard(_TOTAL.size)
        self._stop = -1
        self._reap()
        if len(said) != _TOTAL.size:
            raise LabError("end background traffic", node, "its process had ended, or is silent")
        (self._total,) = _TOTAL.unpack(said)

    def delivered(self) -> int:
        """Bytes that arrived until it was ended."""
        return self._total

    def _heard(self, size: int) -> bytes:
        """What the process says; nothing where it ended, or took too long: then it is ended."""
        ready, _, _ = select.select([self._answer], [], [], _ANSWER_S)
        if ready:
            return os.read(self._answer, size)
        os.kill(self.pid, signal.SIGKILL)
        return b""

    def _reap(self) -> None:
        if self._stop >= 0:
            os.close(self._stop)
        os.close(self._answer)
        os.waitpid(self.pid, 0)

    def _work(self, stop: int, writer: int) -> None:
        stream = self._stream
        with entered(self._there):
            listener = _opened(stream.target)
            listener.listen(_BACKLOG)
        with entered(self._here):
            address, first = stream.source
            senders = [_opened((address, first + number)) for number in range(stream.flows)]
        for sender in senders:
            with contextlib.suppress(BlockingIOError):
                sender.connect(stream.target)
        schedules: list[Iterator[tuple[bool, int]]] = [
            turns(stream.seed, number, stream.on_ns, stream.off_ns)
            for number in range(stream.flows)
        ]
        bulk = Bulk(listener, senders, schedules)
        os.write(writer, b"y")
        bulk.run(stop)
        os.write(writer, _TOTAL.pack(bulk.delivered))


def _opened(address: tuple[str, int]) -> socket.socket:
    """A TCP socket of ours at this address, in the namespace where we are."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setblocking(False)
    made.bind(address)
    return made
