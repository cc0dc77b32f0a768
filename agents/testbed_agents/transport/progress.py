"""How far a transfer of one pair is, for those who wait for that: bytes on the wire of all bytes.

What the kernel was given and has not sent yet does not count. It says so only when asked, so it is
asked again half way to when the rest would be sent at the speed so far, between 50 us and 5 ms.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from testbed_agents.clock import AgentClock
from testbed_agents.transport.lane import Lane

_SHORTEST_NS, _LONGEST_NS = 50_000, 5_000_000


@dataclass(slots=True)
class _Watch:
    transfer: int
    progress: float
    reached: Callable[[int], None]


class Passage:
    """One transfer under way. ``end`` it, whatever became of it."""

    def __init__(
        self, clock: AgentClock, request: int, wire_bytes: int, watches: Sequence[_Watch]
    ) -> None:
        self._clock = clock
        self._request = request
        self._wire_bytes = wire_bytes
        self._waiting = sorted(watches, key=lambda watch: watch.progress)
        self._task: asyncio.Task[None] | None = None

    def begin(self, lanes: Sequence[Lane]) -> None:
        """Its first byte is about to be written, over these lanes."""
        self._reach(0)
        if self._waiting:
            self._task = asyncio.get_running_loop().create_task(self._look(lanes))

    def end(self, whole: bool) -> None:
        """It is over; ``whole``, all of it was on the wire."""
        if self._task is not None:
            self._task.cancel()
        if whole:
            self._reach(self._wire_bytes)

    async def _look(self, lanes: Sequence[Lane]) -> None:
        began_ns = self._clock.now_ns()
        while self._waiting:
            now_ns = self._clock.now_ns()
            sent = sum(lane.on_the_wire() for lane in lanes)
            self._reach(sent)
            if self._waiting:
                left = self._waiting[0].progress * self._wire_bytes - sent
                pause_ns = round(left / max(1, sent) * (now_ns - began_ns) / 2)
                await self._clock.until(now_ns + min(max(pause_ns, _SHORTEST_NS), _LONGEST_NS))

    def _reach(self, sent: int) -> None:
        while self._waiting and sent >= self._waiting[0].progress * self._wire_bytes:
            self._waiting.pop(0).reached(self._request)


class Progress:
    """All transfers of one pair, in the order of their begins."""

    def __init__(self, clock: AgentClock) -> None:
        self._clock = clock
        self._watches: list[_Watch] = []
        self._begun = 0

    def watch(self, transfer: int, progress: float, reached: Callable[[int], None]) -> None:
        """Be told the request of the ``transfer``-th, from 1, when ``progress`` of it is sent."""
        self._watches.append(_Watch(transfer, progress, reached))

    def passage(self, request: int, wire_bytes: int) -> Passage:
        """The next transfer."""
        self._begun += 1
        mine = [watch for watch in self._watches if watch.transfer == self._begun]
        return Passage(self._clock, request, wire_bytes, mine)
