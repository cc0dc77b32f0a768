"""Connections that their holders have lent to others between two chunks."""

from __future__ import annotations

import asyncio

from testbed_agents.pool.opening import Connections


class Loans:
    """By who borrows and which connection. Its holder may go while it is lent."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._back: dict[tuple[int, int], asyncio.Future[bool]] = {}

    def __len__(self) -> int:
        return len(self._back)

    def has(self, borrower: int, connection: int) -> bool:
        """Whether it is lent to this one."""
        return (borrower, connection) in self._back

    def begin(self, borrower: int, connection: int) -> asyncio.Future[bool]:
        """Lend it; returns what its holder waits for: whether it is of use when it is back."""
        back: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._back[borrower, connection] = back
        return back

    def end(self, borrower: int, connection: int, healthy: bool) -> bool:
        """Give it back; False where it was not lent. Of no use, it is reset for its holder."""
        back = self._back.pop((borrower, connection), None)
        if back is None:
            return False
        if not back.done():
            if not healthy:
                self._connections.abort(connection)
            back.set_result(healthy)
        return True
