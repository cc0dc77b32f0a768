"""The one clock of an agent: nanoseconds since the barrier, and waiting for such times."""

from __future__ import annotations

import asyncio
import time

from testbed_agents.event_loop import new_loop

__all__ = ["AgentClock", "new_loop"]

_NS = 1_000_000_000


class AgentClock:
    """Time since the barrier on CLOCK_REALTIME, and waiting for such times.

    Args:
        barrier_ns: CLOCK_REALTIME of the barrier.
    """

    def __init__(self, barrier_ns: int) -> None:
        self._barrier_ns = barrier_ns
        offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()
        self._monotonic_barrier_ns = barrier_ns - offset

    def now_ns(self) -> int:
        """Nanoseconds since the barrier; negative before it."""
        return time.clock_gettime_ns(time.CLOCK_REALTIME) - self._barrier_ns

    def loop_time(self, t_ns: int) -> float:
        """The running loop's time (seconds, monotonic) at ``t_ns`` since the barrier."""
        return (t_ns + self._monotonic_barrier_ns) / _NS

    async def until(self, t_ns: int) -> None:
        """Return at ``t_ns`` since the barrier, or at once when it is past."""
        loop = asyncio.get_running_loop()
        while self.now_ns() < t_ns:  # repeats only where the wall clock was slewed
            done: asyncio.Future[None] = loop.create_future()
            handle = loop.call_at(self.loop_time(t_ns), _finish, done)
            try:
                await done
            finally:
                handle.cancel()

    async def spend(self, duration_ns: int) -> None:
        """Let ``duration_ns`` pass, as a computation of that length would."""
        if duration_ns > 0:
            await self.until(self.now_ns() + duration_ns)


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
