"""Sends numbered frames into one end of a link and collects them, time-stamped, at the other.

Send times are read just before a burst. Under the virtual clock the burst itself takes
no time; receive times are the kernel's (SO_TIMESTAMPNS), exact to the clock's quantum of
256 ns (arch/um TIMER_MULTIPLIER).
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from types import TracebackType

from testbed.fidelity.frame import Template, read_mark, write_mark
from testbed.lab.namespace import entered

SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
SOL_PACKET, PACKET_STATISTICS, PACKET_VNET_HDR = 263, 6, 15
RECEIVE_BUFFER = 1 << 30
HEAD_BYTES = 128
STEP_S, SHORT_S = 0.002, 0.0002
WARM_UP_S = 0.001
"""The kernel switches receive time stamps on a moment after they were asked for."""
ETH_P_ALL = 3
"""Taps come before traffic control at ingress, so they also see what is redirected there."""
_runs = count(1)
"""Numbers of bursts, never reused, so that a late frame is not taken for a new one."""
_TIMESPEC, _STATISTICS = struct.Struct("=qq"), struct.Struct("=II")


@dataclass(frozen=True, slots=True)
class Place:
    """One interface in one namespace."""

    path: str
    interface: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """One frame that came out: its number and the kernel's receive time (ns, realtime)."""

    number: int
    at_ns: int


@dataclass(frozen=True, slots=True)
class Burst:
    """Frames sent at one instant.

    ``took_ns`` is one reading of the clock (256 ns) under the virtual clock;
    ``monotonic_ns`` is CLOCK_MONOTONIC less CLOCK_REALTIME.
    """

    sent_ns: int
    took_ns: int
    monotonic_ns: int
    arrivals: tuple[Arrival, ...]


class Probe:
    """Open sockets at both ends for one kind of frame."""

    def __init__(self, source: Place, sink: Place, template: Template) -> None:
        self.template = template
        with ExitStack() as stack:
            with entered(source.path):
                self._sender = stack.enter_context(_packet_socket(0))
                self._sender.bind((source.interface, 0))
            with entered(sink.path):
                self._receiver = stack.enter_context(_packet_socket(ETH_P_ALL))
                self._receiver.bind((sink.interface, ETH_P_ALL))
            if template.prefix:
                self._sender.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
            self._receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
            self._receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            self._receiver.setblocking(False)
            self._sockets = stack.pop_all()
        time.sleep(WARM_UP_S)

    def __enter__(self) -> Probe:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._sockets.close()

    def burst(self, frames: int, wait_ns: int, enough: int | None = None) -> Burst:
        """Send ``frames`` frames back to back and collect for ``wait_ns`` from the first.

        ``enough`` arrivals end the wait early, where it is given.
        """
        run = next(_runs)
        frame = bytearray(self.template.data)
        at = self.template.prefix + self.template.mark_at
        send = self._sender.send
        monotonic = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        sent = time.clock_gettime_ns(time.CLOCK_REALTIME)
        for number in range(frames):
            write_mark(frame, at, run, number)
            send(frame)
        took = time.clock_gettime_ns(time.CLOCK_REALTIME) - sent
        arrivals: list[Arrival] = []
        while (enough is None or len(arrivals) < enough) and (
            left := sent + wait_ns - time.clock_gettime_ns(time.CLOCK_REALTIME)
        ) > 0:
            time.sleep(min(STEP_S, left / 1e9))
            arrivals.extend(self._drain(run))
        return Burst(sent, took, monotonic - sent, tuple(arrivals))

    def through(self, frames: int, wait_ns: int) -> int:
        """Send ``frames`` frames and return how many came out, as the kernel counts them.

        Returns as soon as all have; nothing is read, so that only the way itself costs time.
        """
        frame = bytearray(self.template.data)
        write_mark(frame, self.template.prefix + self.template.mark_at, next(_runs), 0)
        until = time.monotonic_ns() + wait_ns
        self._counted()
        for _ in range(frames):
            self._sender.send(frame)
        passed = self._counted()
        while passed < frames and time.monotonic_ns() < until:
            time.sleep(SHORT_S)
            passed += self._counted()
        return passed

    def _counted(self) -> int:
        """Frames since the last call."""
        told = self._receiver.getsockopt(SOL_PACKET, PACKET_STATISTICS, _STATISTICS.size)
        return int(_STATISTICS.unpack(told)[0])

    def _drain(self, run: int) -> Iterator[Arrival]:
        while True:
            try:
                data, ancillary, _, _ = self._receiver.recvmsg(HEAD_BYTES, 64)
            except BlockingIOError:
                return
            mark = read_mark(data, self.template.mark_at)
            if mark is not None and mark[0] == run:
                yield Arrival(mark[1], _timestamp(ancillary))


def _packet_socket(ether_type: int) -> socket.socket:
    return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ether_type))


def _timestamp(ancillary: list[tuple[int, int, bytes]]) -> int:
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds, nanoseconds = _TIMESPEC.unpack(data[: _TIMESPEC.size])
            return int(seconds * 1_000_000_000 + nanoseconds)
    return 0
