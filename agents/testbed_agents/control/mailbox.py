"""One mailbox an agent: a bound PULL socket, and a PUSH socket to each peer.

ZeroMQ keeps order per pair and reconnects by itself; bounds are ours. Addresses
are numeric and private to the lab.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import zmq

from testbed.contract.agent import Peer
from testbed.errors import AgentError
from testbed_agents.control.identity import Lives, identity, read_identity
from testbed_agents.control.message import MESSAGE_MAX, Message, decode, encode
from testbed_agents.control.silence import Silence

_SOURCE_PORT = 61_000
"""First source port of outgoing control connections, one a peer: a port that the kernel
chose would make the leg that a connection takes a matter of its random numbers."""
_LAST_PORT = 65_535
QUEUE_MAX = 100_000
"""Messages that may wait for one peer; who lets more wait is taken for lost."""
WAITING_QUEUE = 8
"""The same where sending waits: as few as make the wait seen."""
_WAITING_BUFFER = 4_608
"""Bytes that the kernel takes besides, where sending waits: its least (tcp(7))."""
_OPEN_AGAIN_S = 0.1
"""Pause before a connection is opened for which no descriptor was left."""
_NONE_LEFT = frozenset({errno.EMFILE, errno.ENFILE})
_BEAT_MS = 2_000
_SILENCE_MS = 10_000
"""A watched peer is asked for a sign of life this often, and is lost after this silence. A
process that ends is noticed at once, by its closed connection."""
_CONNECT_MS = 1_000
_PAUSE_MOST_MS = 1_600
"""How long one attempt to connect to a watched peer may take, and the longest pause between two:
they double from 100 ms on."""


@dataclass(frozen=True, slots=True)
class Departed:
    """A watched peer's connection ended: it died, left, or cannot be reached any more. Or a peer,
    watched or not, lets more wait than may."""


class Mailbox:
    """Receives from anybody, sends to known peers. Close it, or use it as a context manager."""

    def __init__(
        self, name: str, address: str, port: int, peers: Iterable[Peer], slow: float = 1.0,
        queue: int = QUEUE_MAX, incarnation: int = 0, waits: bool = False,
    ) -> None:  # fmt: skip
        """``slow``: slow motion, in which signs of life come as many times later. ``queue``:
        messages that may wait for one peer, or to be read. ``incarnation``: this agent's life.
        ``waits``: the defect that sending waits for a peer for which ``queue`` messages wait."""
        self._flags = 0 if waits else zmq.NOBLOCK
        self._signed = identity(name, incarnation)
        self._lives = Lives(first=incarnation == 0)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context(io_threads=1)
        self._inbox = self._context.socket(zmq.PULL)
        self._inbox.setsockopt(zmq.MAXMSGSIZE, MESSAGE_MAX)
        self._inbox.setsockopt(zmq.RCVHWM, queue)
        self._inbox.setsockopt(zmq.LINGER, 0)
        self._inbox.bind(f"tcp://{address}:{port}")
        self._address = address
        self._slow = slow
        self._queue = queue
        self._peers = {peer.name: peer for peer in peers}
        self._ports = {name: _SOURCE_PORT + i for i, name in enumerate(sorted(self._peers))}
        self._outboxes: dict[str, zmq.Socket[bytes]] = {}
        self._leaving: dict[str, list[bytes]] = {}
        self._kept: dict[str, list[bytes]] = {}
        """Messages for a connection that could not be opened yet."""
        self._again: asyncio.TimerHandle | None = None
        self._arrived: deque[bytes | str] = deque()
        """Messages, and names of watched peers that departed."""
        self.silence = Silence(self._hear)
        self._monitors: dict[str, zmq.Socket[bytes]] = {}
        self._dropped: set[str] = set()
        self._waiter: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reading = False

    def __enter__(self) -> Mailbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self, name: str, beat: bool = False) -> None:
        """Opens the connection to a peer ahead of the first message; ``beat`` keeps it alive."""
        if name in self._outboxes or name in self._dropped:
            return
        peer = self._peer(name)
        outbox: zmq.Socket[bytes] = self._context.socket(zmq.PUSH)
        outbox.setsockopt(zmq.SNDHWM, self._queue)
        outbox.setsockopt(zmq.LINGER, 1_000)
        if not self._flags:
            outbox.setsockopt(zmq.SNDBUF, _WAITING_BUFFER)
        if beat:
            outbox.setsockopt(zmq.HEARTBEAT_IVL, round(_BEAT_MS * self._slow))
            outbox.setsockopt(zmq.HEARTBEAT_TIMEOUT, round(_SILENCE_MS * self._slow))
            outbox.setsockopt(zmq.CONNECT_TIMEOUT, round(_CONNECT_MS * self._slow))
            outbox.setsockopt(zmq.RECONNECT_IVL_MAX, round(_PAUSE_MOST_MS * self._slow))
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
        self._kept.pop(name, None)
        self._unwatch(name)
        outbox = self._outboxes.pop(name, None)
        if outbox is not None:
            outbox.close(linger=0)

    def seek(self, name: str, message: Message) -> None:
        """Tries for ever to reach a dropped peer, ever less often; it is then told ``message``.

        It is watched from the moment at which the connection stands.
        """
        self.restore(name)
        self.watch(name)
        outbox = self._outboxes[name]
        outbox.setsockopt(zmq.LINGER, 0)  # whoever is dead must not delay our own end
        self.send(name, message)

    def renew(self, name: str) -> None:
        """Gives up the connection to a peer with all that waits for it; the next is a new one."""
        self.drop(name)
        self.restore(name)

    def restore(self, name: str) -> None:
        """A dropped peer is back: it can be connected to again, from another source port.

        The port that was used may still belong to a connection which the kernel cannot end.
        """
        if name not in self._dropped:
            return
        self._dropped.discard(name)
        if name in self._ports:  # else this agent has nothing to say to it
            count = len(self._peers)
            span = (_LAST_PORT - _SOURCE_PORT + 1) // count * count
            self._ports[name] = _SOURCE_PORT + (self._ports[name] - _SOURCE_PORT + count) % span

    def send(self, name: str, message: Message) -> int:
        """Sends without waiting, with all that goes to the same peer in this turn of the loop.

        Returns the bytes of the message, without ZeroMQ's and TCP's headers. What is for a
        dropped peer is dropped too: 0 bytes.

        It never waits for the peer: one that lets too much wait is dropped, and ``receive``
        tells of it as ``Departed``.

        Raises:
            AgentError: the name is unknown.
        """
        if name in self._dropped:
            return 0
        self._peer(name)
        data = encode(self._signed, message)
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        if not self._leaving:
            self._loop.call_soon(self._depart)
        self._leaving.setdefault(name, []).append(data)
        return len(data)

    def _peer(self, name: str) -> Peer:
        peer = self._peers.get(name)
        if peer is None:
            raise AgentError("send a control message", name, "no such peer in this agent's config")
        return peer

    def _depart(self) -> None:
        """One ZeroMQ operation a peer: each costs about thirty system calls on its way."""
        leaving, self._leaving = self._leaving, {}
        for name, messages in leaving.items():
            if name in self._kept:
                self._keep(name, messages)
                continue
            try:
                self.connect(name)
                self._outboxes[name].send_multipart(messages, self._flags)
            except zmq.Again:
                self._overwhelmed(name)
            except zmq.ZMQError as error:
                if error.errno not in _NONE_LEFT:
                    raise
                self._keep(name, messages)

    def _keep(self, name: str, messages: list[bytes]) -> None:
        """No descriptor is left for a connection: they wait for one, in order."""
        kept = self._kept.setdefault(name, [])
        kept += messages
        if len(kept) > self._queue:
            self._overwhelmed(name)
        elif self._again is None and self._loop is not None:
            self._again = self._loop.call_later(_OPEN_AGAIN_S * self._slow, self._depart_again)

    def _depart_again(self) -> None:
        self._again = None
        kept, self._kept = self._kept, {}
        for name, messages in kept.items():
            self._leaving[name] = messages + self._leaving.get(name, [])
        self._depart()

    def _overwhelmed(self, name: str) -> None:
        """Too much waits for a peer: it reads nothing, or cannot be reached."""
        self.drop(name)
        self._arrived.append(name)
        self._wake()

    async def receive(self) -> tuple[str, Message | Departed]:
        """(sender, message) in arrival order; raises ProtocolError on nonsense.

        ``Departed`` comes to those who ``watch``, where too much waits for the peer, and ahead of
        the first message of its next life; its last messages may follow it.
        """
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        if not self._reading:
            self._reading = True
            self._loop.add_reader(self._inbox.fileno(), self._drain)
            self._drain()
        while True:
            while not self._arrived:
                self._waiter = self._loop.create_future()
                await self._waiter
            full = len(self._arrived) >= self._queue
            first = self._arrived.popleft()
            if full:
                self._drain()  # ZeroMQ held what came beyond, and may make no further sound
            if isinstance(first, str):
                return first, Departed()
            signed, message = decode(first)
            name, incarnation = read_identity(signed)
            begins = self._lives.hear(name, incarnation)
            if begins is None:
                continue  # the last words of one that is gone
            if begins:
                self._arrived.appendleft(first)
                return name, Departed()
            return name, message

    def _drain(self) -> None:
        """Takes everything that is there: every part of a delivery is a message.

        ZeroMQ's descriptor says that something happened, once: it must be drained until
        nothing is left, or the next message makes no sound. What comes while too much waits to
        be read stays with ZeroMQ, and then with its sender.
        """
        while len(self._arrived) < self._queue:
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
        if self._again is not None:
            self._again.cancel()
        if self._reading and self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._inbox.fileno())
        for name in tuple(self._monitors):
            self._unwatch(name)
        for outbox in self._outboxes.values():
            outbox.close()
        self._inbox.close()
        self._context.term()
