"""Messages that are heard late, in their order: how an agent is made to answer late, or not."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class Silence:
    """Holds back what comes, as long as it is in force.

    Args:
        hear: takes a message that is not held back any more.
    """

    def __init__(self, hear: Callable[[bytes], None]) -> None:
        self._hear = hear
        self._held: deque[bytes] = deque()
        self._delay_s: float | None = None
        self._timers: deque[asyncio.TimerHandle] = deque()
        self.in_force = False

    def begin(self, delay_s: float | None) -> None:
        """What comes from now on is heard so much later; None: when this ends."""
        self.in_force = True
        self._delay_s = delay_s

    def end(self) -> None:
        """What is held back is heard now, before anything else."""
        self.in_force = False
        while self._timers:
            self._timers.popleft().cancel()
        while self._held:
            self._hear(self._held.popleft())

    def hold(self, message: bytes) -> None:
        """It came while this is in force."""
        self._held.append(message)
        if self._delay_s is not None:
            loop = asyncio.get_running_loop()
            self._timers.append(loop.call_later(self._delay_s, self._release))

    def _release(self) -> None:
        self._timers.popleft()
        self._hear(self._held.popleft())
