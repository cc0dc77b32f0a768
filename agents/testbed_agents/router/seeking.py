"""How the router looks for an instance that it lost: way after way, ever less often."""

from __future__ import annotations

import asyncio

from testbed_agents.control.plane import Seek
from testbed_agents.runtime import Runtime

FIRST_S, MOST_S = 2.0, 32.0
"""How long one way is tried at first, and at most; it doubles."""


class Seeking:
    """All instances that are sought. One that is reached answers ``Back``."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._again: dict[str, asyncio.TimerHandle] = {}

    def begin(self, name: str, patience_s: float = FIRST_S) -> None:
        """Tries to reach it, and after a while over another source port, so perhaps leg."""
        self.end(name)
        self._runtime.mailbox.drop(name)
        self._runtime.mailbox.seek(name, Seek())
        self._again[name] = asyncio.get_running_loop().call_later(
            patience_s * self._runtime.config.slow, self.begin, name, min(2 * patience_s, MOST_S)
        )

    def end(self, name: str) -> None:
        """It is found. Once is enough."""
        again = self._again.pop(name, None)
        if again is not None:
            again.cancel()
