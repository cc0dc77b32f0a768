"""One mailbox an agent: a bound PULL socket, and a PUSH socket to each peer.

ZeroMQ keeps order per pair and reconnects by itself; bounds are ours. Addresses
are numeric and private to the lab.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import zmq

from testbed.contract.agent import Peer
from testbed.errors import AgentError
from testbed_agents.control.message import MESSAGE_MAX, Message, decode, encode
from testbed_agents.control.silence import Silence

_SOURCE_PORT = 61_000
"""First source port of outgoing control connections, one a peer: a port that the kernel
chose would make the leg that a connection takes a matter of its random numbers."""
_QUEUE_MAX = 100_000
"""Messages that may wait for one peer before sending is an error."""
_BEAT_MS = 2_000
_SILENCE_MS = 10_000
"""A watched peer is asked for a sign of life this often, and is lost after this silence. A
process that ends is noticed at once, by its closed connection."""


@dataclass(frozen=True, slots=True)
class Departed:
    """A watched peer's connection ended: it died, left, or cannot be reached any more."""


class Mailbox:
    """Receives from anybody, sends to known peers. Close it, or use it as a context manager."""

    def __init__(
        self, name: str, address: str, port: int, peers: Iterable[Peer], slow: float = 1.0
    ) -> None:
        """``slow``: slow motion, in which signs of life come as many times later."""
        self._name = name
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context(io_threads=1)
        self._inbox = self._context.socket(zmq.PULL)
        self._inbox.setsockopt(zmq.MAXMSGSIZE, MESSAGE_MAX)
        self._inbox.setsockopt(zmq.RCVHWM, _QUEUE_MAX)
        self._inbox.setsockopt(zmq.LINGER, 0)
        self._inbox.bind(f"tcp://{address}:{port}")
        self._address = address
        self._slow = slow
        self._peers = {peer.name: peer for peer in peers}
        self._ports = {name: _SOURCE_PORT + i for i, name in enumerate(sorted(self._peers))}
        self._outboxes: dict[str, zmq.Socket[bytes]] = {}
        self._leaving: dict[str, list[bytes]] = {}
        self._arrived: deque[bytes | str] = deque()
        """Messages, and names of watched peers that departed."""
        self.silence = Silence(self._hear)
        self._monitors: dict[str, zmq.Socket[bytes]] = {}
        self._dropped: set[str] = set()
        self._waiter: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reading = False
        self._defect: AgentError | None = None

    def __enter__(self) -> Mailbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self, name: str, beat: bool = False) -> None:
        """Opens the connection to a peer ahead of the first message; ``beat`` keeps it alive."""
        if name in self._outboxes or name in self._dropped:
            return
        peer = self._peers.get(name)
        if peer is None:
            raise AgentError("send a control message", name, "no such peer in this agent's config")
        outbox: zmq.Socket[bytes] = self._context.socket(zmq.PUSH)
        outbox.setsockopt(zmq.SNDHWM, _QUEUE_MAX)
        outbox.setsockopt(zmq.LINGER, 1_000)
        if beat:
            outbox.setsockopt(zmq.HEARTBEAT_IVL, round(_BEAT_MS * self._slow))
            outbox.setsockopt(zmq.HEARTBEAT_TIMEOUT, round(_SILENCE_MS * self._slow))
        source = f"{self._address}:{self._ports[name]}"
        outbox.connect(f"tcp://{source};{peer.address}:{peer.control_port}")
        self._outboxes[name] = outbox

    def watch(self, name: str) -> None:
        """Like ``connect``; the end of the connection is then received as ``Departed``."""
        if name in self._monitors or name in self._dropped:
            return
        self.connect(name, beat=True)
        monitor = self._outboxes[name].get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self._monitors[name] = monitor
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self._loop.add_reader(monitor.fileno(), self._departed, name)
        self._departed(name)  # the descriptor makes a sound once: nothing may be left in it

    def drop(self, name: str) -> None:
        """The peer is gone for good: nothing is sent to it any more, what waits is forgotten."""
        self._dropped.add(name)
        self._leaving.pop(name, None)
        self._unwatch(name)
        outbox = self._outboxes.pop(name, None)
        if outbox is not None:
            outbox.close(linger=0)

    def send(self, name: str, message: Message) -> int:
        """Sends without waiting, with all that goes to the same peer in this turn of the loop.

        Returns the bytes of the message, without ZeroMQ's and TCP's headers. What is for a
        dropped peer is dropped too: 0 bytes.

        Raises:
            AgentError: the name is unknown, or the peer's queue was full at an earlier turn.
        """
        if name in self._dropped:
            return 0
        self.connect(name)
        if self._defect is not None:
            raise self._defect
        data = encode(self._name, message)
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        if not self._leaving:
            self._loop.call_soon(self._depart)
        self._leaving.setdefault(name, []).append(data)
        return len(data)

    def _depart(self) -> None:
        """One ZeroMQ operation a peer: each costs about thirty system calls on its way."""
        leaving, self._leaving = self._leaving, {}
        for name, messages in leaving.items():
            try:
                self._outboxes[name].send_multipart(messages, zmq.NOBLOCK)
            except zmq.Again:
                self._defect = AgentError(
                    "send a control message", name, f"{_QUEUE_MAX} messages wait for it already"
                )

    async def receive(self) -> tuple[str, Message | Departed]:
        """(sender, message) in arrival order; raises ProtocolError on nonsense.

        ``Departed`` comes only to those who ``watch``; the peer's last messages may follow it.
        """
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        if not self._reading:
            self._reading = True
            self._loop.add_reader(self._inbox.fileno(), self._drain)
            self._drain()
        while not self._arrived:
            self._waiter = self._loop.create_future()
            await self._waiter
        if len(self._arrived) > _QUEUE_MAX:
            raise AgentError(
                "receive control messages", self._name, f"more than {_QUEUE_MAX} wait to be read"
            )
        first = self._arrived.popleft()
        return (first, Departed()) if isinstance(first, str) else decode(first)

    def _drain(self) -> None:
        """Takes everything that is there: every part of a delivery is a message.

        ZeroMQ's descriptor says that something happened, once: it must be drained until
        nothing is left, or the next message makes no sound.
        """
        while True:
            try:
                message = self._inbox.recv(zmq.NOBLOCK)
            except zmq.Again:
                break
            if self.silence.in_force:
                self.silence.hold(message)
            else:
                self._arrived.append(message)
        self._wake()

    def _hear(self, message: bytes) -> None:
        self._arrived.append(message)
        self._wake()

    def _departed(self, name: str) -> None:
        """Takes every event of a monitor, for the same reason; one is enough to know."""
        monitor, seen = self._monitors[name], False
        with contextlib.suppress(zmq.Again):
            while True:
                monitor.recv_multipart(zmq.NOBLOCK)
                seen = True
        if seen:
            self._unwatch(name)
            self._arrived.append(name)
            self._wake()

    def _unwatch(self, name: str) -> None:
        monitor = self._monitors.pop(name, None)
        if monitor is not None:
            if self._loop is not None and not self._loop.is_closed():
                self._loop.remove_reader(monitor.fileno())
            self._outboxes[name].disable_monitor()
            monitor.close(linger=0)

    def _wake(self) -> None:
        if self._arrived and self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        """Closes every socket; unsent messages get one second. Once is enough."""
        if self._inbox.closed:
            return
        self._depart()
        if self._reading and self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._inbox.fileno())
        for name in tuple(self._monitors):
            self._unwatch(name)
        for outbox in self._outboxes.values():
            outbox.close()
        self._inbox.close()
        self._context.term()
