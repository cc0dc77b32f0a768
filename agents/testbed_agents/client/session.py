"""The client's side of the serving plane: asks the router, sees each position once, in order."""

from __future__ import annotations

import asyncio

from testbed.contract.agent import Request
from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.errors import AgentError
from testbed_agents.control.plane import Ask
from testbed_agents.handoff.client import ClientPart
from testbed_agents.handoff.message import Cancel, Emission, Evicted, Failure
from testbed_agents.runtime import Runtime


class Asked:
    """All requests of one client that go through the router."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        peers = runtime.config.peers
        self._router = next(peer.name for peer in peers if peer.role is Role.ROUTER)
        self._relays = frozenset(peer.name for peer in peers if peer.role is Role.RELAY)
        self._senders: dict[tuple[int, int], str] = {}
        """Who speaks for an epoch of an answer."""
        self._parts: dict[int, ClientPart] = {}
        self._ended: dict[int, asyncio.Event] = {}

    def connect(self) -> None:
        """Opens the connection to the router ahead of the first request."""
        self._runtime.mailbox.connect(self._router)

    def submit(self, request: Request) -> asyncio.Event:
        """Sends a request; the event is set when it has ended."""
        self._runtime.events.emit(
            Kind.REQUEST_SENT, request.wire_bytes, req=request.id,
            input_tokens=request.input_tokens, hit_tokens=request.hit_tokens,
            output_tokens=request.output_tokens,
        )  # fmt: skip
        self._runtime.mailbox.send(
            self._router,
            Ask(
                request.id, [span.segment for span in request.prompt],
                [span.tokens for span in request.prompt], request.output_tokens,
                request.session or 0, self._runtime.config.node,
            ),
        )  # fmt: skip
        self._ended[request.id] = asyncio.Event()
        self._runtime.progress()
        return self._ended[request.id]

    async def listen(self) -> None:
        """Takes what comes until cancelled."""
        while True:
            sender, message = await self._runtime.mailbox.receive()
            match message:
                case Emission() | Evicted() if self._ended[message.req].is_set():
                    pass  # the end was told; what comes behind it is nobody's answer
                case Emission():
                    relayed = sender in self._relays or message.epoch > 0
                    self._emission(self._part(message.req, relayed), message, sender)
                case Evicted():
                    self._part(message.req, True).evicted(message)
                case Failure(req, reason):
                    self.fail(req, reason)
                case _:
                    raise AgentError("obey a control message", sender, type(message).__name__)

    def unfinished(self) -> list[int]:
        """Requests that have not ended, in order."""
        return sorted(req for req, event in self._ended.items() if not event.is_set())

    def expire(self) -> None:
        """The deadline: what has not ended fails, and whoever works on it is told to stop."""
        for req in self.unfinished():
            self.fail(req, "deadline")
            self._runtime.mailbox.send(self._router, Cancel(req))

    def fail(self, req: int, reason: str) -> None:
        """The request ends without a (further) answer."""
        if req in self._ended and not self._ended[req].is_set():
            self._runtime.events.emit(Kind.REQUEST_FAILED, 0, req=req, reason=reason)
            self._ended[req].set()
            self._parts.pop(req, None)

    def _part(self, req: int, relayed: bool) -> ClientPart:
        if req not in self._parts:
            self._parts[req] = ClientPart(req, relayed)
        return self._parts[req]

    def _emission(self, part: ClientPart, message: Emission, sender: str) -> None:
        self._senders[part.req, message.epoch] = sender
        for one in part.accept(message):  # perhaps of another epoch, which waited for this
            self._runtime.events.emit(
                Kind.TOKEN, 0, req=part.req, pos=one.position, token=one.token,
                source=self._senders[part.req, one.epoch],
            )  # fmt: skip
        if part.outcome == "done" and not self._ended[part.req].is_set():
            self._runtime.events.emit(Kind.REQUEST_DONE, 0, req=part.req, tokens=list(part.tokens))
            self._ended[part.req].set()
