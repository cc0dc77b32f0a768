"""What every discipline knows in the same way: who is busy, who is idle, who waits. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

from testbed_agents.pool.discipline import Claim, Grant
from testbed_agents.pool.line import Line


class Holdings(ABC):
    """Connections in use and open ones that nobody uses, and the line of those who wait."""

    _busy: set[int]
    _idle: Collection[int]
    _line: Line

    @abstractmethod
    def _advance(self, now_ns: int) -> None:
        """Take note of the time. Raises ValueError where it runs backwards."""

    @property
    def busy(self) -> int:
        """Connections that carry a transfer, or are opened for one."""
        return len(self._busy)

    @property
    def idle(self) -> int:
        """Open connections that nobody uses."""
        return len(self._idle)

    @property
    def waiting(self) -> int:
        """Transfers that wait for a connection."""
        return len(self._line)

    @property
    def next_deadline_ns(self) -> int | None:
        """When ``expire`` has something to do next; None when there is nothing."""
        return self._line.next_deadline_ns

    def is_idle(self, connection: int) -> bool:
        """Whether it is open and nobody uses it."""
        return connection in self._idle

    def lend(self, connection: int, claim: Claim, now_ns: int) -> Grant | None:
        """Lend a busy connection to whose turn it is, if that one comes before ``claim``."""
        self._advance(now_ns)
        if connection not in self._busy:
            raise ValueError(f"connection {connection} is not busy")
        first = self._line.before(claim)
        if first is None:
            return None
        ticket, since_ns = first
        return Grant(ticket, connection, now_ns - since_ns, lent=True)
