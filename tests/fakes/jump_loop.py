"""An event loop on which no time is waited for: it jumps to the next timer."""

from __future__ import annotations

import asyncio
from selectors import SelectorKey

from testbed_agents.clock import AgentClock
from testbed_agents.event_loop import PreciseLoop, PreciseSelector

_NS = 1_000_000_000


class JumpSelector(PreciseSelector):
    """Never looks at a descriptor; a wait without an end is a deadlock of the program."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ns = 0

    def time_ns(self) -> int:
        return self.now_ns

    def refresh(self) -> None:
        """Time stands still between two waits."""

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everybody waits, and nothing will ever happen")
        if timeout > 0:
            self.now_ns += max(1, round(timeout * _NS))
        return []


class JumpLoop(PreciseLoop):
    """Time begins at 0."""

    def __init__(self) -> None:
        self._precise = JumpSelector()
        asyncio.SelectorEventLoop.__init__(self, self._precise)


class JumpClock(AgentClock):
    """The clock of such a loop; the barrier is at 0."""

    def __init__(self) -> None:
        super().__init__(0, virtual=True)
        self._monotonic_barrier_ns = 0


async def until_idle() -> None:
    """Until everybody waits for somebody else or for time: before that the loop jumps nowhere."""
    await asyncio.sleep(0.001)
