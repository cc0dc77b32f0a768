"""Faults that an agent applies to itself at the times of its plan, and writes into its record."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

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
from testbed.errors import AgentError
from testbed_agents.clock import AgentClock
from testbed_agents.descriptors import DescriptorLimit
from testbed_agents.leaving import Leaving
from testbed_agents.wallclock import WallClock


class Receiver(Protocol):
    """What can be made to read nothing, or to accept nobody."""

    def hold(self, held: bool) -> None:
        """Reads nothing while ``held``."""
        ...

    def refrain(self, backlog: int | None) -> None:
        """Accepts nothing, and lets ``backlog`` + 1 wait; None goes on accepting."""
        ...


class Spoilt(Protocol):
    """The part of a pool that takes its afflictions."""

    def leak(self, each: int | None, hit: Callable[[int], None]) -> None:
        """Every ``each``-th loan is never given back; None stops that."""
        ...

    def skip(self, chunk: int | None, which: int | None, hit: Callable[[int], None]) -> None:
        """A chunk of the ``which``-th transfer from now on is never sent."""
        ...

    def outdate(self, which: int | None, hit: Callable[[int], None]) -> None:
        """The ``which``-th transfer from now on has other blocks than its digests say."""
        ...

    def spare(self, kind: str) -> None:
        """``skip-chunk`` or ``stale`` ends."""
        ...


class Sender(Protocol):
    """A pool to one receiver, which can be made worse."""

    @property
    def affliction(self) -> Spoilt:
        """What spoils its loans and transfers."""
        ...

    def shrink(self, fewer: int) -> None:
        """So many connections fewer."""
        ...

    def keep_ports(self, left: int | None) -> None:
        """Only the first ``left`` source ports are of use; None is all."""
        ...

    def drop(self, connection: int, clean: bool) -> bool:
        """Lose one connection; False where it is not open."""
        ...


class Hearing(Protocol):
    """What can be made to hear control messages late."""

    def begin(self, delay_s: float | None) -> None:
        """So much later; None when it ends."""
        ...

    def end(self) -> None:
        """What was held back is heard."""
        ...


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
        self._due = sorted(
            (
                (at_ns, begins, fault)
                for fault in config.faults
                for span in fault.spans
                for at_ns, begins in ((span.begin_ns, True), (span.end_ns, False))
                if at_ns is not None
            ),
            key=lambda due: (due[0], due[1]),
        )
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
        if not self._due:
            await work
            return
        async with asyncio.TaskGroup() as group:
            suffering = group.create_task(self._suffer())
            await work
            suffering.cancel()

    async def _suffer(self) -> None:
        await self._passed.wait()
        for at_ns, begins, fault in self._due:
            await self._clock.until(at_ns)
            if begins:
                self._say(Kind.FAULT_BEGAN, fault)
            self._apply(fault, begins)
            if not begins:
                self._say(Kind.FAULT_ENDED, fault)

    def _say(self, kind: Kind, fault: AgentFault) -> None:
        self._log.emit(kind, fault=fault.name, subject=self._node)

    def _hit(self, fault: AgentFault, request: int) -> None:
        self._log.emit(Kind.FAULT_HIT, fault=fault.name, subject=self._node, req=request)

    def _apply(self, fault: AgentFault, begins: bool) -> None:
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
                sender.shrink(lose if begins else 0)
            case FewPorts(left=left):
                sender.keep_ports(left if begins else None)
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
