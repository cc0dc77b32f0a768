"""A wall clock that jumps: every reading of CLOCK_REALTIME that this process makes in Python.

Not with clock_settime(2): that would move the clock of the lab and of every other agent too.
What counts time on another clock, as ``AgentClock`` and the event loop do, sees nothing of it.
"""

from __future__ import annotations

import time

_TIME_NS = time.time_ns
_GET_NS = time.clock_gettime_ns
_NS = 1_000_000_000


class WallClock:
    """The ``time`` module's own functions; what copied one of them before keeps the right time."""

    def jump(self, offset_ns: int) -> None:
        """All readings are off by so much from now on; 0 is right again."""

        def time_ns() -> int:
            return _TIME_NS() + offset_ns

        def gettime_ns(clock: int, /) -> int:
            return _GET_NS(clock) + (offset_ns if clock == time.CLOCK_REALTIME else 0)

        time.time_ns = time_ns
        time.clock_gettime_ns = gettime_ns
        time.time = lambda: time_ns() / _NS
        time.clock_gettime = lambda clock, /: gettime_ns(clock) / _NS
