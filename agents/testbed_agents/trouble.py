"""Faults that an agent applies to itself at the times of its plan, and writes into its record."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
from collections.abc import Awaitable
from typing import Protocol

from testbed.contract.agent import AgentConfig
from testbed.contract.event import EventLog, Kind
from testbed.contract.fault import AgentFault, FewDescriptors, SlowCompute, Stall
from testbed.errors import AgentError
from testbed_agents.clock import AgentClock

_OPEN = "/proc/self/fd"


class Receiver(Protocol):
    """What can be made to read nothing."""

    def hold(self, held: bool) -> None:
        """Reads nothing while ``held``."""
        ...


class Trouble:
    """The faults of one agent. One event loop; ``start`` comes when the barrier is passed.

    Attributes:
        receivers: of KV; whoever makes one adds it before the barrier.
    """

    def __init__(self, config: AgentConfig, clock: AgentClock, log: EventLog) -> None:
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
        self._limit: tuple[int, int] | None = None
        self.receivers: list[Receiver] = []

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
            self._apply(fault, begins)
            kind = Kind.FAULT_BEGAN if begins else Kind.FAULT_ENDED
            self._log.emit(kind, fault=fault.name, subject=self._node)

    def _apply(self, fault: AgentFault, begins: bool) -> None:
        match fault.effect:
            case SlowCompute(factor=factor):
                self._clock.burden = factor if begins else 1.0
            case Stall():
                if not self.receivers:
                    raise AgentError(
                        "stall an agent", self._node, "it receives no KV",
                        "name an agent that does: an MD or an RLD",
                    )  # fmt: skip
                for receiver in self.receivers:
                    receiver.hold(begins)
            case FewDescriptors(left=left):
                self._limit_descriptors(left if begins else None)

    def _limit_descriptors(self, left: int | None) -> None:
        """Lowers the soft limit (getrlimit(2)) so far that ``left`` more fit; None raises it."""
        if left is None:
            if self._limit is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, self._limit)
            self._limit = None
            return
        self._limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = limit_for(_open_descriptors(), left)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, self._limit[1]))
        if resource.getrlimit(resource.RLIMIT_NOFILE)[0] != wanted:
            raise AgentError("limit descriptors", self._node, "the kernel kept another limit")


def limit_for(taken: frozenset[int], left: int) -> int:
    """The limit on descriptor numbers below which ``left`` are free; those above stay open."""
    number = 0
    while True:
        if number not in taken:
            if left == 0:
                return number
            left -= 1
        number += 1


def _open_descriptors() -> frozenset[int]:
    """Without the one that listing them takes."""
    found: set[int] = set()
    for number in map(int, os.listdir(_OPEN)):
        with contextlib.suppress(OSError):
            os.fstat(number)
            found.add(number)
    return frozenset(found)
