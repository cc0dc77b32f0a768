"""Does a connection that owes an answer still hear its peer's kernel? If not, its leg is down.

A receiver that reads nothing answers probes of its closed window, and a slow link delivers
acknowledgements late, in step with its round trip: neither is a stall.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from testbed_agents.transport.tcp_info import TcpInfo

SILENCE_MS = 1_000
"""Least silence that is a stall: three retransmissions in a row that were not answered (200 ms,
400 ms, and the next is under way)."""
ROUND_TRIPS = 8
"""And at least so many smoothed round trips, for links whose queue takes seconds."""
_SOONEST_MS = 50


def silence_bound_ms(info: TcpInfo) -> int:
    """How long the peer's kernel may owe an answer. Pure."""
    return max(SILENCE_MS, ROUND_TRIPS * (info.rtt_us + 4 * info.rttvar_us) // 1_000)


def is_stalled(info: TcpInfo) -> bool:
    """Whether it has owed one for longer than that. Pure."""
    return info.owed > 0 and info.silent_ms >= silence_bound_ms(info)


class StallWatch:
    """Looks at one connection now and then, from ``start`` to ``end``.

    Args:
        look: the kernel's view in emulated time; None once the connection is gone.
        slow: seconds of the loop that an emulated one takes.
        stalled: called once, with how long it has been silent in milliseconds.
    """

    def __init__(
        self, look: Callable[[], TcpInfo | None], slow: float, stalled: Callable[[int], None]
    ) -> None:
        self._look = look
        self._slow = slow
        self._stalled = stalled
        self._alarm: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """A transfer begins."""
        self._again(SILENCE_MS)

    def end(self) -> None:
        """It has ended. Once is enough."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _again(self, after_ms: int) -> None:
        loop = asyncio.get_running_loop()
        self._alarm = loop.call_later(after_ms / 1_000 * self._slow, self._see)

    def _see(self) -> None:
        self._alarm = None
        info = self._look()
        if info is None:
            return
        if is_stalled(info):
            self._stalled(info.silent_ms)
            return
        left_ms = silence_bound_ms(info) - (info.silent_ms if info.owed else 0)
        self._again(max(_SOONEST_MS, left_ms))
