"""The one clock of an agent: emulated nanoseconds since the barrier, and waiting for such times."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import TypeVar

from testbed.contract.lateness import Lateness
from testbed_agents.event_loop import PreciseLoop, new_loop

__all__ = ["AgentClock", "new_loop"]

_NS = 1_000_000_000
_OVERRUN = 1.05
"""A step that takes more than this many times its profile is late."""
_Result = TypeVar("_Result")

Late = Callable[[int, int], None]
"""Told (profile, took), both in nanoseconds, of a step that took longer than its profile."""


def _nobody(profile_ns: int, took_ns: int) -> None:
    pass


class AgentClock:
    """Time since the barrier, and waiting for such times; on CLOCK_MONOTONIC, but for one reading.

    Args:
        barrier_ns: CLOCK_REALTIME of the barrier.
        virtual: computing takes no time, so that time stands still within a turn of the
            loop and is read once per turn; each reading would cost 256 ns of virtual
            time and a system call. Under a real clock every call reads.
        late: told of steps that took longer than they may; never under the virtual clock.
        slow: slow motion: an emulated second takes so many of CLOCK_REALTIME. All times
            that come and go are emulated.
    """

    def __init__(
        self, barrier_ns: int, virtual: bool = False, late: Late = _nobody, slow: float = 1.0
    ) -> None:
        self.virtual = virtual
        self.late = late
        self.slow = slow
        self.burden = 1.0
        """How many times its profile a step takes; a fault raises it."""
        self.lateness = Lateness()
        """How late waits ended; empty under the virtual clock."""
        self._loop: PreciseLoop | None = None
        self.start(barrier_ns)

    def start(self, barrier_ns: int) -> None:
        """The barrier is at ``barrier_ns`` of CLOCK_REALTIME; a real clock is told it late.

        The wall clock is read for this once: it may jump, and no time of a run is to jump with it.
        """
        self._barrier_ns = barrier_ns
        offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()
        self._monotonic_barrier_ns = barrier_ns - offset

    def now_ns(self) -> int:
        """Nanoseconds since the barrier; negative before it."""
        if self.virtual:
            loop = self._running_loop()
            if loop is not None:
                return self._emulated(loop.turn_ns() - self._monotonic_barrier_ns)
        return self._emulated(time.monotonic_ns() - self._monotonic_barrier_ns)

    def _emulated(self, since_ns: int) -> int:
        return since_ns if self.slow == 1 else int(since_ns // self.slow)

    def _since_ns(self, t_ns: int) -> int:
        """Time of this machine since the barrier at ``t_ns``; never before ``now_ns`` says so."""
        return t_ns if self.slow == 1 else -int(-t_ns * self.slow // 1)

    def realtime_ns(self) -> int:
        """CLOCK_REALTIME as it would be, had it not been set since the barrier was told."""
        return self._since_ns(self.now_ns()) + self._barrier_ns

    def seconds(self, duration_ns: int) -> float:
        """An emulated duration in seconds of the event loop, for ``asyncio.timeout``."""
        return self._since_ns(duration_ns) / _NS

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
        return (self._since_ns(t_ns) + self._monotonic_barrier_ns) / _NS

    async def until(self, t_ns: int) -> None:
        """Return at ``t_ns`` since the barrier, or at once when it is past."""
        loop = asyncio.get_running_loop()
        waited = False
        now_ns = self.now_ns()
        while now_ns < t_ns:  # repeats only where a timer was rounded down
            waited = True
            done: asyncio.Future[None] = loop.create_future()
            handle = loop.call_at(self.loop_time(t_ns), _finish, done)
            try:
                await done
            finally:
                handle.cancel()
            now_ns = self.now_ns()
        if waited and t_ns > 0 and not self.virtual:
            self.lateness.wait(now_ns - t_ns)

    async def spend(self, duration_ns: int) -> None:
        """Let ``duration_ns`` pass, as a computation of that length would."""
        if duration_ns > 0:
            await self.until(self.now_ns() + duration_ns)

    async def during(self, duration_ns: int, work: Callable[[], _Result]) -> _Result:
        """A step: let ``duration_ns`` pass, in which ``work`` is done; returns its result.

        Under the virtual clock computing takes no time, and it is done when the time has
        passed. Under a real clock it is done first, and only what is left is waited for. A step
        that has no time counts as a wait that ended late by what it took.
        """
        if self.burden != 1:
            duration_ns = round(duration_ns * self.burden)
        if self.virtual:
            await self.spend(duration_ns)
            return work()
        began = self.now_ns()
        result = work()
        await self.until(began + duration_ns)
        took = self.now_ns() - began
        if duration_ns <= 0:
            self.lateness.wait(took)
            return result
        late = took > duration_ns * _OVERRUN
        self.lateness.step(late)
        if late:
            self.late(duration_ns, took)
        return result


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
