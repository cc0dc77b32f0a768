"""Faults that an agent applies to itself at the times of its plan, and writes into its record."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

from testbed.contract.agent import AgentConfig
from testbed.contract.ailment import (
    Backlog,
    DropConnection,
    FewDescriptors,
    FewPorts,
    Jump,
    Leak,
    Leave,
    PairEffect,
    Shrink,
    Silence,
    SkipChunk,
    SlowCompute,
    Stale,
    Stall,
)
from testbed.contract.event import EventLog, Kind
from testbed.contract.fault import AgentFault
from testbed.contract.meeting import drain
from testbed.contract.trigger import Reached
from testbed.errors import AgentError
from testbed_agents.clock import AgentClock
from testbed_agents.descriptors import DescriptorLimit
from testbed_agents.leaving import Leaving
from testbed_agents.victims import Hearing, Receiver, Sender
from testbed_agents.wallclock import WallClock

Due: TypeAlias = tuple[int, bool, AgentFault]
"""When, whether it begins or ends, and what."""


class Trouble:
    """The faults of one agent. One event loop; ``start`` comes when the barrier is passed.

    Attributes:
        receivers: of KV; whoever makes one adds it before the barrier.
        senders: of KV, by their peer; likewise.
        leaving: whom a client tells of its requests.
    """

    def __init__(
        self, config: AgentConfig, clock: AgentClock, log: EventLog, hearing: Hearing | None = None
    ) -> None:
        self._node = config.node
        self._clock = clock
        self._log = log
        timed = [fault for fault in config.faults if fault.trigger is None]
        self._due = sorted(
            (due for fault in timed for due in _due(fault)), key=lambda due: (due[0], due[1])
        )
        self._waiting = {one.name: one for one in config.faults if one.trigger is not None}
        self._watches = config.watches
        self._reached = Reached(Path(config.events).parent.parent)
        self._group: asyncio.TaskGroup | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._passed = asyncio.Event()
        self._limit = DescriptorLimit(config.node)
        self._wall = WallClock()
        self._hearing = hearing
        self.receivers: list[Receiver] = []
        self.senders: dict[str, Sender] = {}
        self.leaving = Leaving(clock)

    def start(self) -> None:
        """The barrier is passed: times count from now."""
        self._passed.set()

    async def beside(self, work: Awaitable[None]) -> None:
        """Applies what is due while ``work`` is done; a failure of either ends both."""
        if not (self._due or self._waiting or self._watches):
            await work
            return
        async with asyncio.TaskGroup() as self._group:
            self._tasks.append(self._group.create_task(self._begin()))
            await work
            for task in self._tasks:
                task.cancel()

    async def _begin(self) -> None:
        """What is due at a time is applied here; who waits for something is told when."""
        elsewhere = {
            name
            for name, fault in self._waiting.items()
            if fault.trigger is not None and fault.trigger.sender != self._node
        }
        with self._listening(elsewhere):
            await self._passed.wait()
            for watch in self._watches:
                trigger = watch.trigger
                self._sender(trigger.receiver).progress.watch(
                    trigger.transfer, trigger.progress, partial(self._saw, watch.fault)
                )
            await self._suffer(self._due)
            if elsewhere:
                await asyncio.get_running_loop().create_future()  # until cancelled

    async def _suffer(self, due: Iterable[Due], base_ns: int = 0, request: int = 0) -> None:
        for at_ns, begins, fault in due:
            await self._clock.until(base_ns + at_ns)
            if begins:
                self._say(Kind.FAULT_BEGAN, fault)
            self._apply(fault, begins, request)
            if not begins:
                self._say(Kind.FAULT_ENDED, fault)

    @contextmanager
    def _listening(self, elsewhere: set[str]) -> Iterator[None]:
        """Hears of what other agents saw."""
        if not elsewhere:
            yield
            return
        loop = asyncio.get_running_loop()
        with self._reached.news() as news:
            loop.add_reader(news, self._hear, news, elsewhere)
            try:
                yield
            finally:
                loop.remove_reader(news)

    def _hear(self, news: int, elsewhere: set[str]) -> None:
        drain(news, 0)
        for name in sorted(elsewhere):
            request = self._reached.request(name)
            if request is not None:
                elsewhere.remove(name)
                self._come(name, request)

    def _saw(self, fault: str, request: int) -> None:
        """As the sender: what the fault waits for has come."""
        self._log.emit(Kind.FAULT_REACHED, fault=fault, subject=self._node, req=request)
        self._come(fault, request)
        if fault not in self._waiting or len(self._waiting[fault].nodes) > 1:
            self._reached.tell(fault, request)

    def _come(self, name: str, request: int) -> None:
        """What the fault waits for has come: its times count from now."""
        fault = self._waiting.get(name)
        if fault is None or self._group is None:
            return
        due, base_ns = _due(fault), self._clock.now_ns()
        while due and due[0][0] == 0:  # at once, in this very turn
            _, begins, _ = due.pop(0)
            self._say(Kind.FAULT_BEGAN, fault)
            self._apply(fault, begins, request)
        self._tasks.append(self._group.create_task(self._suffer(due, base_ns, request)))

    def _say(self, kind: Kind, fault: AgentFault) -> None:
        self._log.emit(kind, fault=fault.name, subject=self._node)

    def _hit(self, fault: AgentFault, request: int) -> None:
        self._log.emit(Kind.FAULT_HIT, fault=fault.name, subject=self._node, req=request)

    def _apply(self, fault: AgentFault, begins: bool, request: int = 0) -> None:
        match fault.effect:
            case SlowCompute(factor=factor):
                self._clock.burden = factor if begins else 1.0
            case Stall():
                for receiver in self._known_receivers("stall"):
                    receiver.hold(begins)
            case Backlog(length=length):
                for receiver in self._known_receivers("overflow the accept queue of"):
                    receiver.refrain(length if begins else None)
            case FewDescriptors(left=left):
                self._limit.leave(left if begins else None)
            case Jump(offset_ns=offset_ns):
                self._wall.jump(offset_ns if begins else 0)
            case Silence(delay_ns=delay_ns):
                self._silence(delay_ns, begins)
            case Leave() as leave if begins and fault.trigger is not None:
                self.leaving.go(request, leave, partial(self._hit, fault))
            case Leave() as leave if begins:
                self.leaving.begin(leave, partial(self._hit, fault))
            case Leave():
                self.leaving.end()
            case effect:
                self._worsen(effect, self._sender(effect.peer), fault, begins)

    def _worsen(self, effect: PairEffect, sender: Sender, fault: AgentFault, begins: bool) -> None:
        hit = partial(self._hit, fault)
        match effect:
            case Shrink(lose=lose):
                sender.withheld.shrink(lose if begins else 0)
            case FewPorts(left=left):
                sender.withheld.keep_ports(left if begins else None)
            case Leak(each=each):
                sender.affliction.leak(each if begins else None, hit)
            case DropConnection(connection=connection, clean=clean):
                if begins and sender.drop(connection, clean):
                    self._log.emit(
                        Kind.FAULT_HIT, fault=fault.name, subject=self._node, conn=connection
                    )
            case SkipChunk(chunk=chunk, transfer=which) if begins:
                sender.affliction.skip(chunk, which, hit)
            case Stale(transfer=which) if begins:
                sender.affliction.outdate(which, hit)
            case SkipChunk() | Stale():
                sender.affliction.spare(effect.kind)

    def _silence(self, delay_ns: int | None, begins: bool) -> None:
        if self._hearing is None:
            raise AgentError("silence an agent", self._node, "it hears nobody")
        if begins:
            self._hearing.begin(None if delay_ns is None else self._clock.seconds(delay_ns))
        else:
            self._hearing.end()

    def _known_receivers(self, attempt: str) -> list[Receiver]:
        if not self.receivers:
            raise AgentError(
                f"{attempt} an agent", self._node, "it receives no KV",
                "name an agent that does: an MD or an RLD",
            )  # fmt: skip
        return self.receivers

    def _sender(self, peer: str) -> Sender:
        if peer not in self.senders:
            raise AgentError(
                "worsen a pool", f"{self._node} to {peer}", "it sends no KV there",
                "name a sender of KV and its receiver",
            )  # fmt: skip
        return self.senders[peer]


def _due(fault: AgentFault) -> list[Due]:
    """Its begins and ends in order; at one moment an end comes before a begin."""
    moments = [(span.begin_ns, True, fault) for span in fault.spans]
    moments += [(span.end_ns, False, fault) for span in fault.spans if span.end_ns is not None]
    return sorted(moments, key=lambda due: (due[0], due[1]))
