"""Standing connections that a pool has lost for a while: closed, and opened anew when it may."""

from __future__ import annotations

from collections.abc import Callable

from testbed_agents.pool import PoolGate
from testbed_agents.transport.bundle import Bundle


class Withheld:
    """Of one pool whose connections stand.

    Args:
        reopen: opens one anew and restores it.
    """

    def __init__(self, gate: PoolGate, lanes: Bundle, reopen: Callable[[int], None]) -> None:
        self._gate = gate
        self._lanes = lanes
        self._reopen = reopen
        self._wanted = 0
        self._held: list[int] = []

    def __len__(self) -> int:
        return len(self._held)

    def want(self, count: int) -> None:
        """So many must be gone: idle ones go at once, the highest first; others may come back."""
        self._wanted = count
        for connection in reversed(range(self._gate.state.standing)):
            if len(self._held) < count and self._gate.state.is_idle(connection):
                self._gate.retire(connection)
                self._take(connection)
        while len(self._held) > count:
            self._reopen(self._held.pop())

    def takes_loan(self, request: int, connection: int) -> bool:
        """Whether a healthy one goes, now that its transfer has ended."""
        if len(self._held) >= self._wanted or self._gate.has_lent(request, connection):
            return False
        self._gate.retire(connection, request)
        self._take(connection)
        return True

    def takes_broken(self, connection: int) -> bool:
        """Whether one that is out of use already need not come back yet."""
        if len(self._held) >= self._wanted:
            return False
        self._take(connection)
        return True

    def _take(self, connection: int) -> None:
        self._held.append(connection)
        self._lanes[connection].close()
