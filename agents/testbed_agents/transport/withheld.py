"""What a pool has lost for a while: connections, source ports, and how they come back."""

from __future__ import annotations

from collections.abc import Callable

from testbed_agents.pool import PoolGate
from testbed_agents.transport.bundle import Bundle


class Withheld:
    """Of one pool. Connections that stand are closed here, and opened anew when they may; others
    the discipline does without.

    Args:
        reopen: opens one anew and restores it.
    """

    def __init__(self, gate: PoolGate, lanes: Bundle, reopen: Callable[[int], None]) -> None:
        self._gate = gate
        self._lanes = lanes
        self._reopen = reopen
        self._wanted = 0
        self._ports: int | None = None
        self._held: list[int] = []

    def moved(self, gate: PoolGate, lanes: Bundle) -> Withheld:
        """The same of a pool that takes the place of this one, all of whose connections are gone:
        those that stand are ``takes_broken`` as they come."""
        other = Withheld(gate, lanes, self._reopen)
        other._wanted, other._ports = self._wanted, self._ports
        if not gate.state.standing and (self._wanted or self._ports is not None):
            gate.limit(self._wanted, self._ports)
        return other

    def __len__(self) -> int:
        return len(self._held)

    def shrink(self, fewer: int) -> None:
        """So many connections fewer; those in use go when their transfer has ended."""
        self._wanted = fewer
        if not self._gate.state.standing:
            self._gate.limit(fewer, self._ports)
            return
        self.settle()
        while len(self._held) > fewer:
            self._reopen(self._held.pop())

    def keep_ports(self, left: int | None) -> None:
        """Only the first ``left`` source ports are of use; None is all. Only where none stand."""
        self._ports = left
        self._gate.limit(self._wanted, left)

    def settle(self) -> None:
        """Standing ones that are still to go, and idle, go now, the highest first."""
        if not self._owes:
            return
        for connection in reversed(range(self._gate.state.standing)):
            if self._owes and self._gate.state.is_idle(connection):
                self._gate.retire(connection)
                self._take(connection)

    def takes_loan(self, request: int, connection: int) -> bool:
        """Whether a healthy one goes, now that its transfer has ended."""
        if not self._owes or self._gate.has_lent(request, connection):
            return False
        self._gate.retire(connection, request)
        self._take(connection)
        return True

    def takes_broken(self, connection: int) -> bool:
        """Whether one that is out of use already need not come back yet."""
        if not self._owes:
            return False
        self._take(connection)
        return True

    @property
    def _owes(self) -> bool:
        """Whether standing connections are still to go."""
        return self._gate.state.standing > 0 and len(self._held) < self._wanted

    def _take(self, connection: int) -> None:
        self._held.append(connection)
        self._lanes[connection].close()
