"""The connection that was used last goes first, and what stays idle is closed. Pure.

A burst opens as many connections as it has transfers. Behind it the lower ones of the stack
stay idle together, and so are closed together.
"""

from __future__ import annotations

from testbed_agents.pool.discipline import Ending
from testbed_agents.pool.line import Line
from testbed_agents.pool.ondemand import OnDemand


class LifoPool(OnDemand):
    """A stack of idle connections, each closed after ``idle_timeout_ns`` without use."""

    def __init__(self, size: int | None, ports: int, line: Line, idle_timeout_ns: int) -> None:
        super().__init__(size, ports, line)
        if idle_timeout_ns < 1:
            raise ValueError("a stack needs idle_timeout_ns >= 1")
        self._idle_timeout_ns = idle_timeout_ns

    @property
    def next_deadline_ns(self) -> int | None:
        """When the next wait ends or the next idle connection is closed."""
        waits_ns = super().next_deadline_ns
        for since_ns in self._idle.values():
            idle_ns = since_ns + self._idle_timeout_ns
            return idle_ns if waits_ns is None else min(idle_ns, waits_ns)
        return waits_ns

    def expire(self, now_ns: int) -> tuple[int, ...]:
        """Also gives up the connections that have been idle for the whole time."""
        late = super().expire(now_ns)
        for connection, since_ns in tuple(self._idle.items()):
            if since_ns + self._idle_timeout_ns > now_ns:
                break
            del self._idle[connection]
            self._give_up(connection, Ending.IDLE)
        return late

    def _pick(self) -> int | None:
        return next(reversed(self._idle), None)

    def _keeps(self) -> bool:
        return True
