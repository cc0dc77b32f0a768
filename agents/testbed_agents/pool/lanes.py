"""Few connections, opened when they are first needed, and kept. Pure.

The lowest idle one goes first, so that little load keeps few connections busy, whose windows
stay open.
"""

from __future__ import annotations

from testbed_agents.pool.line import Line
from testbed_agents.pool.ondemand import OnDemand


class LanesPool(OnDemand):
    """At most ``size`` lanes."""

    def __init__(self, size: int, line: Line) -> None:
        super().__init__(size, size, line)

    def _pick(self) -> int | None:
        return min(self._idle, default=None)

    def _keeps(self) -> bool:
        return True
