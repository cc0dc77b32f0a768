"""The one clock of an agent: nanoseconds since the barrier, and waiting for such times."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import TypeVar

from testbed_agents.event_loop import PreciseLoop, new_loop

__all__ = ["AgentClock", "new_loop"]

_NS = 1_000_000_000
_Result = TypeVar("_Result")

Late = Callable[[int, int], None]
"""Told (profile, took), both in nanoseconds, of work that took longer than its profile."""


def _nobody(profile_ns: int, took_ns: int) -> None:
    pass


class AgentClock:
    """Time since the barrier on CLOCK_REALTIME, and waiting for such times.

    Args:
        barrier_ns: CLOCK_REALTIME of the barrier.
        virtual: computing takes no time, so that time stands still within a turn of the
            loop and is read once per turn; each reading would cost 256 ns of virtual
            time and a system call. Under a real clock every call reads.
        late: told of work that took longer than it may; never under the virtual clock.
    """

    def __init__(self, barrier_ns: int, virtual: bool = False, late: Late = _nobody) -> None:
        self._barrier_ns = barrier_ns
        self._virtual = virtual
        self._late = late
        offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()
        self._monotonic_barrier_ns = barrier_ns - offset
        self._loop: PreciseLoop | None = None

    def now_ns(self) -> int:
        """Nanoseconds since the barrier; negative before it."""
        if self._virtual:
            loop = self._running_loop()
            if loop is not None:
                return loop.turn_ns() - self._monotonic_barrier_ns
        return time.clock_gettime_ns(time.CLOCK_REALTIME) - self._barrier_ns

    def _running_loop(self) -> PreciseLoop | None:
        """Kept, because asking asyncio for it is a system call (getpid, until Python 3.12)."""
        if self._loop is None or not self._loop.is_running():
            self._loop = None
            with contextlib.suppress(RuntimeError):  # no loop runs
                loop = asyncio.get_running_loop()
                self._loop = loop if isinstance(loop, PreciseLoop) else None
        return self._loop

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

    async def during(self, duration_ns: int, work: Callable[[], _Result]) -> _Result:
        """Let ``duration_ns`` pass, in which ``work`` is done; returns its result.

        Under the virtual clock computing takes no time, and it is done when the time has
        passed. Under a real clock it is done first, and only what is left is waited for.
        """
        if self._virtual:
            await self.spend(duration_ns)
            return work()
        began = self.now_ns()
        result = work()
        took = self.now_ns() - began
        if took > duration_ns:
            self._late(duration_ns, took)
        await self.until(began + duration_ns)
        return result


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
