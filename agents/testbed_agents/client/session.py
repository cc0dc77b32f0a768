"""The client's side of the serving plane: asks the router, sees each position once, in order.

A request whose attempt failed because an instance was lost, or had no room, is asked again,
a bounded number of times. Every attempt answers from position 0 with the same tokens: what
the user has seen already is compared, not shown again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

from testbed.contract.agent import Request
from testbed.contract.attempt import attempt_id, number_of, request_of
from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.contract.serving import FirstToken as Who
from testbed.errors import AgentError
from testbed_agents.client.worth import worth_another
from testbed_agents.control.mailbox import Departed
from testbed_agents.control.plane import (
    NO_SESSION,
    Ask,
    Found,
    Lost,
    Note,
    Orphaned,
    Settle,
    Settled,
)
from testbed_agents.handoff.action import Send
from testbed_agents.handoff.client import ClientPart
from testbed_agents.handoff.message import Cancel, Emission, Evicted, Failure, FirstToken
from testbed_agents.runtime import Runtime

LEFT = "client-left"
"""Reason of ``request.failed`` where the user went."""


@dataclass(slots=True)
class Asking:
    """One request until it ends; ``ask.req`` is the job of its present attempt."""

    ask: Ask
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    seen: list[int] = field(default_factory=list)
    """Tokens that the user saw, over all attempts."""
    part: ClientPart | None = None
    senders: dict[int, str] = field(default_factory=dict)
    """Who speaks for an epoch of the present attempt."""
    why: str = ""
    """Why the attempt before the present one failed."""


class Asked:
    """All requests of one client that go through the router."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        peers = runtime.config.peers
        self._router = runtime.router
        self._relays = frozenset(peer.name for peer in peers if peer.role is Role.RELAY)
        self._asking: dict[int, Asking] = {}
        self._settled = asyncio.Event()
        serving = runtime.config.serving
        self._stop = frozenset(runtime.config.model.stop)
        self._prefilled = serving is not None and serving.first_token is Who.PREFILL
        self._alone = False
        """The router is gone."""
        self._left: list[int] = []
        """Jobs that were left without a word, which the router has to be told in the end."""
        self._leaving = runtime.trouble.leaving
        self._leaving.leave = self.leave

    def connect(self) -> None:
        """Opens the connection to the router ahead of the first request."""
        self._runtime.mailbox.watch(self._router)

    def submit(self, request: Request) -> asyncio.Event:
        """Sends a request; the event is set when it has ended."""
        self._runtime.events.emit(
            Kind.REQUEST_SENT, request.wire_bytes, req=request.id,
            input_tokens=request.input_tokens, hit_tokens=request.hit_tokens,
            output_tokens=request.output_tokens,
        )  # fmt: skip
        ask = Ask(
            request.id, [span.segment for span in request.prompt],
            [span.tokens for span in request.prompt], request.output_tokens,
            NO_SESSION if request.session is None else request.session + 1,
            self._runtime.config.node,
        )  # fmt: skip
        one = self._asking[request.id] = Asking(ask)
        self._runtime.mailbox.send(self._router, ask)
        self._leaving.sent(request.id)
        if self._alone:
            self._end(one, "router-lost")
        self._runtime.progress()
        return one.ended

    async def listen(self) -> None:
        """Takes what comes until cancelled."""
        while True:
            sender, message = await self._runtime.mailbox.receive()
            match message:
                case FirstToken() | Emission() | Evicted() | Failure() | Orphaned():
                    one = self._asking[request_of(message.req)]
                    if one.ask.req == message.req and not one.ended.is_set():
                        self._hear(one, message, sender)  # else nobody's answer any more
                case Lost(name):
                    self._runtime.mailbox.drop(name)
                case Found(name):
                    self._runtime.mailbox.restore(name)
                case Settled():
                    self._settled.set()
                case Departed() if sender != self._router:
                    self._runtime.mailbox.drop(sender)
                case Departed():
                    self._lose_router()
                case _:
                    raise AgentError("obey a control message", sender, type(message).__name__)

    async def settle(self) -> None:
        """All requests have ended: waits until nobody works for any of them."""
        if not self._alone:
            for job in self._left:
                self._runtime.mailbox.send(self._router, Cancel(job))
            self._runtime.mailbox.send(self._router, Settle())
            await self._settled.wait()

    def leave(self, request: int, clean: bool) -> bool:
        """The user goes: see ``Leaving``; ``request`` may be the job of an attempt, or another
        client's. What is left uncleanly is told only with ``settle``."""
        one = self._asking.get(request_of(request))
        if one is None or one.ended.is_set():
            return False
        self._end(one, LEFT, told=clean)
        return True

    def unfinished(self) -> list[int]:
        """Requests that have not ended, in order."""
        return sorted(req for req, one in self._asking.items() if not one.ended.is_set())

    def expire(self) -> None:
        """The deadline: what has not ended fails, and whoever works on it is told to stop."""
        for req in self.unfinished():
            self._end(self._asking[req], "deadline")

    def _hear(
        self,
        one: Asking,
        message: FirstToken | Emission | Evicted | Failure | Orphaned,
        sender: str,
    ) -> None:
        match message:
            case FirstToken(req, token, relay):
                last = one.ask.output_tokens == 1 or token in self._stop
                part = self._part(one, bool(relay))
                self._emission(one, part, Emission(req, 0, 0, 0, (token,), last), sender)
            case Emission():
                relayed = sender in self._relays or message.epoch > self._prefilled
                self._emission(one, self._part(one, relayed), message, sender)
            case Evicted():
                self._part(one, True).evicted(message)
            case Failure(_, reason):
                self._fail(one, reason)
            case Orphaned(_, decode) if not decode:
                self._fail(one, "relay-lost")
            case Orphaned(_, decode):
                for action in self._part(one, True).relay_lost():
                    if isinstance(action, Send):
                        self._runtime.mailbox.send(decode, action.message)

    def _part(self, one: Asking, relayed: bool) -> ClientPart:
        if one.part is None:
            one.part = ClientPart(one.ask.req, relayed, self._prefilled)
        return one.part

    def _emission(self, one: Asking, part: ClientPart, message: Emission, sender: str) -> None:
        one.senders[message.epoch] = sender
        for token in part.accept(message):  # perhaps of another epoch, which waited for this
            if token.position < len(one.seen):
                if one.seen[token.position] != token.token:
                    self._fail(one, f"diverged at position {token.position}")
                    return
                continue
            one.seen.append(token.token)
            self._runtime.events.emit(
                Kind.TOKEN, 0, req=part.req, pos=token.position, token=token.token,
                source=one.senders[token.epoch],
            )  # fmt: skip
            self._leaving.shown(request_of(part.req), len(one.seen))
            if one.ended.is_set():
                return
        if part.outcome == "done":
            self._runtime.events.emit(Kind.REQUEST_DONE, 0, req=part.req, tokens=list(part.tokens))
            one.ended.set()
            self._runtime.mailbox.send(self._router, Note(part.req, "ended", 0))

    def _fail(self, one: Asking, reason: str) -> None:
        """Another attempt where that may help, else the end."""
        job = one.ask.req
        if not worth_another(reason, number_of(job)) or self._alone:
            self._end(one, one.why or reason)
            return
        number = number_of(job) + 1
        one.why = reason
        one.ask = replace(one.ask, req=attempt_id(request_of(job), number))
        one.part = None
        one.senders.clear()
        self._runtime.events.emit(Kind.REQUEST_RETRIED, 0, req=one.ask.req, reason=reason)
        self._runtime.mailbox.send(self._router, one.ask)

    def _end(self, one: Asking, reason: str, told: bool = True) -> None:
        """The request ends without a (further) answer; nobody is to work for it any more."""
        if not one.ended.is_set():
            self._runtime.events.emit(Kind.REQUEST_FAILED, 0, req=one.ask.req, reason=reason)
            one.ended.set()
            one.part = None
            if told:
                self._runtime.mailbox.send(self._router, Cancel(one.ask.req))
            else:
                self._left.append(one.ask.req)

    def _lose_router(self) -> None:
        """What is under way goes on without it; nothing new can be asked."""
        self._alone = True
        self._runtime.mailbox.drop(self._router)
        self._settled.set()
