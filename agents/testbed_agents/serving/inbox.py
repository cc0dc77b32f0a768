"""The seam between a decode instance and what brings it KV."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from testbed_agents.transport import IncomingTransfer


class KvInbox(Protocol):
    """Verified transfers, one call each; see ``transport.KvReceiver``."""

    def bind(self) -> None:
        """Listen; nothing is accepted before ``serve``."""
        ...

    async def serve(self, handler: Callable[[IncomingTransfer], Awaitable[None]]) -> None:
        """Pass every verified transfer to ``handler``, until cancelled."""
        ...

    def hold(self, held: bool) -> None:
        """Read nothing while ``held``."""
        ...

    def abort(self, request: int) -> None:
        """Nobody wants the request's KV any more."""
        ...

    def refrain(self, backlog: int | None) -> None:
        """Accept nothing, and let ``backlog`` + 1 wait; None goes on accepting."""
        ...

    async def close(self) -> None:
        """Accept nothing any more."""
        ...
