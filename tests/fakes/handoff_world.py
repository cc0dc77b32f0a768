"""One handoff with three sides, four queues and a scheduler that the test holds.

Queues keep the order of each sender, as ZeroMQ does; any of them may be slow, and the
message in front may be delivered twice. Engines compute for real: KV that is wrong, or
used after its release, cannot give the right tokens.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from testbed.contract.handoff import HandoffMode, Occupancy
from testbed_agents.handoff.action import Actions, Feed, Publish, Release, Send, SendIncrement
from testbed_agents.handoff.client import ClientPart, Delivered
from testbed_agents.handoff.main import MainPart
from testbed_agents.handoff.message import (
    Cancel,
    Emission,
    Evicted,
    Failure,
    FirstToken,
    Message,
    Peer,
    Refused,
    Resend,
    Takeover,
    TokenIds,
)
from testbed_agents.handoff.relay import RelayPart
from testbed_agents.model.kv import Kv
from testbed_agents.model.protocol import Model, Step

BOUNDLESS = Occupancy(most_tokens=1 << 20, least_tokens=1 << 20)


class Sequence(Protocol):
    """KV of one sequence on one side."""

    def step(self, tokens: tuple[int, ...]) -> int:
        """Feeds tokens; the choice after the last."""
        ...

    def fork(self, length: int | None = None) -> Sequence:
        """A copy of the first rows that grows on its own."""
        ...

    @property
    def length(self) -> int:
        """Rows."""
        ...


class SumSequence:
    """A model as cheap as possible whose choice depends on every row."""

    def __init__(self, rows: tuple[int, ...]) -> None:
        self.rows = list(rows)

    def step(self, tokens: tuple[int, ...]) -> int:
        self.rows += tokens
        return sum((i + 1) * (t + 7) ** 2 for i, t in enumerate(self.rows)) % 1009

    def fork(self, length: int | None = None) -> SumSequence:
        return SumSequence(tuple(self.rows[:length]))

    @property
    def length(self) -> int:
        return len(self.rows)


class RealSequence:
    """A real engine's KV."""

    def __init__(self, model: Model[Kv], kv: Kv, req: int) -> None:
        self.model, self.kv, self.req = model, kv, req

    def step(self, tokens: tuple[int, ...]) -> int:
        return self.model.decode([Step(self.kv, tokens, self.req)])[0].token

    def fork(self, length: int | None = None) -> RealSequence:
        rows = self.kv.prefix(self.kv.length if length is None else length)
        return RealSequence(self.model, rows, self.req)

    @property
    def length(self) -> int:
        return self.kv.length


def reference(prompt: Sequence, feed: int, most: int, stop: frozenset[int]) -> tuple[int, ...]:
    """The answer of one uninterrupted engine."""
    kv, tokens = prompt.fork(), list[int]()
    while len(tokens) < most and (not tokens or tokens[-1] not in stop):
        tokens.append(kv.step((tokens[-1] if tokens else feed,)))
    return tuple(tokens)


class World:
    """All sides and what is on the way between them."""

    def __init__(
        self, prompt: Sequence, feed: int, most: int, mode: HandoffMode, lead: int = 2,
        stop: frozenset[int] = frozenset(), occupancy: Occupancy = BOUNDLESS,
        load: float = 0.0, prefilled: bool = False,
    ) -> None:  # fmt: skip
        self.mode, self.load = mode, load
        self.prompt_rows = prompt.length
        self.queues: dict[tuple[Peer, Peer], deque[Message]] = {}
        first: int | None = None
        if prefilled:  # P feeds the last prompt token, sends its row too, and emits position 0
            prompt = prompt.fork()
            first = prompt.step((feed,))
            for to in (Peer.CLIENT, Peer.MAIN):
                self.queues[Peer.PREFILL, to] = deque([FirstToken(5, first, "r1")])
        self.prompt = prompt
        self.most, self.stop = most, stop
        self.relay = RelayPart(5, feed, most, stop, occupancy, 0, first)
        self.main = MainPart(5, feed, most, stop, lead, prefilled=prefilled)
        self.client = ClientPart(5, prefilled=prefilled)
        self.relay_kv: Sequence | None = prompt.fork()
        self.main_kv: Sequence | None = None
        self.coming: Sequence | None = prompt.fork()
        self.increment: tuple[int, Sequence] | None = None
        self.dead: set[Peer] = set()
        self.feeds: dict[Peer, Feed] = {}
        self.released = {Peer.RELAY: 0, Peer.MAIN: 0}
        self.published = 0
        self.extended: list[int] = []
        self.seen: list[Delivered] = []
        self.emitters: dict[int, set[Peer]] = {0: {Peer.PREFILL}} if prefilled else {}
        self.do(Peer.RELAY, self.relay.begun())

    # --- moves --------------------------------------------------------------------------

    def moves(self) -> list[Callable[[], None]]:
        """Everything that may happen next, repetitions aside."""
        found: list[Callable[[], None]] = []
        for ends, queue in self.queues.items():
            if queue and ends[1] not in self.dead:
                found.append(lambda ends=ends: self.deliver(ends))  # type: ignore[misc]
        if Peer.RELAY not in self.dead and (Peer.RELAY in self.feeds or not self.relay.ended):
            found.append(self.relay_step)
        if Peer.MAIN not in self.dead:
            found.append(self.main_step)
            if self.coming is not None:
                found.append(self.kv_comes)
            if self.increment is not None:
                found.append(self.increment_comes)
        return found

    def deliver(self, ends: tuple[Peer, Peer], keep: bool = False) -> None:
        """Hands over the oldest message; ``keep`` leaves it to be delivered once more."""
        queue = self.queues[ends]
        message = queue[0] if keep else queue.popleft()
        match ends[1], message:
            case Peer.CLIENT, FirstToken():
                last = message.token in self.stop or self.most == 1
                first = Emission(message.req, 0, 0, 0, (message.token,), last)
                self.seen += self.client.accept(first)
            case Peer.MAIN, FirstToken():
                self.do(Peer.MAIN, self.main.first_heard(message.token))
            case Peer.CLIENT, Emission():
                self.seen += self.client.accept(message)
            case Peer.CLIENT, Evicted():
                self.client.evicted(message)
            case Peer.CLIENT, Failure():
                self.end(message.reason)
            case Peer.MAIN, TokenIds():
                self.do(Peer.MAIN, self.main.heard_tokens(message))
            case Peer.MAIN, Evicted():
                self.do(Peer.MAIN, self.main.evicted(message))
            case Peer.MAIN, Resend():
                self.do(Peer.MAIN, self.main.resend(message))
            case Peer.MAIN, Failure():
                self.do(Peer.MAIN, self.main.increment_failed())
            case Peer.MAIN, Cancel():
                self.do(Peer.MAIN, self.main.cancelled())
            case Peer.RELAY, Takeover():
                self.do(Peer.RELAY, self.relay.taken_over(message, self.load))
            case Peer.RELAY, Refused():
                self.do(Peer.RELAY, self.relay.main_lost(message.reason))
            case Peer.RELAY, Cancel():
                self.do(Peer.RELAY, self.relay.cancelled())
            case _:
                raise AssertionError(f"{message} has no business at {ends[1]}")

    def relay_step(self) -> None:
        """Begins a step of RLD, or ends the one that runs."""
        feed = self.feeds.pop(Peer.RELAY, None)
        if feed is None:
            planned = self.relay.plan()
            if planned is not None:
                self.feeds[Peer.RELAY] = planned
            return
        assert self.relay_kv is not None, "a step on released KV"
        token = self.relay_kv.step(feed.tokens)
        self.do(Peer.RELAY, self.relay.stepped(token, self.load, 0))

    def main_step(self) -> None:
        """Begins a step of MD, or ends the one that runs."""
        feed = self.feeds.pop(Peer.MAIN, None)
        if feed is None:
            planned = self.main.plan()
            if planned is not None:
                self.feeds[Peer.MAIN] = planned
            return
        assert self.main_kv is not None, "a step on released KV"
        self.extended.append(len(feed.tokens))
        self.do(Peer.MAIN, self.main.stepped(self.main_kv.step(feed.tokens)))

    def relay_preempted(self) -> None:
        """RLD loses the rows of its own tokens."""
        if Peer.RELAY not in self.feeds and self.relay_kv is not None:
            self.relay_kv = self.prompt.fork()
            self.relay.preempted()

    def main_preempted(self) -> None:
        """MD loses the rows of all output tokens."""
        if Peer.MAIN not in self.feeds and self.main_kv is not None:
            self.main_kv = self.prompt.fork()
            self.main.preempted()

    def kv_comes(self) -> None:
        """The prompt's KV is verified at MD."""
        self.main_kv, self.coming = self.coming, None
        self.do(Peer.MAIN, self.main.kv_verified(self.mode))

    def kv_fails(self) -> None:
        """MD refuses the KV."""
        self.coming = None
        self.do(Peer.MAIN, self.main.kv_refused("memory"))

    def increment_comes(self) -> None:
        """RLD's rows are at MD."""
        assert self.increment is not None
        (rows, kv), self.increment = self.increment, None
        if self.main.released:
            self.do(Peer.MAIN, self.main.increment_arrived(rows))
        else:
            self.main_kv = kv
            self.do(Peer.MAIN, self.main.increment_arrived(rows))
        self.do(Peer.RELAY, self.relay.increment_done())

    def relay_dies(self) -> None:
        """RLD is gone, with everything that it had not sent; the sent may arrive in part."""
        self.dead.add(Peer.RELAY)
        self.increment = None

    def main_dies(self) -> None:
        """MD is gone."""
        self.dead.add(Peer.MAIN)
        if self.increment is not None:
            self.increment = None
            self.do(Peer.RELAY, self.relay.increment_done())

    # --- effects ------------------------------------------------------------------------

    def do(self, by: Peer, actions: Actions) -> None:
        """Carries out what a side asks for."""
        for action in actions:
            match action:
                case Send(to=to, message=message):
                    if isinstance(message, Emission):
                        for offset in range(len(message.tokens)):
                            self.emitters.setdefault(message.position + offset, set()).add(by)
                    self.queues.setdefault((by, to), deque()).append(message)
                case Publish():
                    self.published += 1
                case Release():
                    self.released[by] += 1
                    if by is Peer.RELAY:
                        self.relay_kv = None
                    else:
                        self.main_kv = None
                case SendIncrement(rows=rows):
                    assert self.relay_kv is not None
                    self.increment = (rows, self.relay_kv.fork(self.prompt_rows + rows))

    def end(self, reason: str) -> None:
        """The client is told that nobody is left to answer, or its user goes away."""
        self.client.outcome = self.client.outcome or reason

    def drain(self, most: int = 20_000) -> None:
        """Every side goes on in turn until nothing changes any more."""
        for _ in range(most):
            before = self._state()
            for move in self.moves():
                move()
            if self._state() == before and not any(self._open_queues()):
                return
        raise AssertionError("it never ends")

    def _open_queues(self) -> list[int]:
        return [len(q) for ends, q in self.queues.items() if ends[1] not in self.dead]

    def _state(self) -> tuple[object, ...]:
        return (
            self.relay.emitted, self.main.rows.fed, len(self.seen), dict(self.feeds),
            dict(self.released), self.published, self.client.outcome, self.coming is None,
        )  # fmt: skip
