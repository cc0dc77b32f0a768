"""Which requests were announced: their KV may come first, over another connection."""

from __future__ import annotations

import asyncio

from testbed.errors import ProtocolError
from testbed_agents.transport import IncomingTransfer


class Announced:
    """Every request that the router has named, in the whole run.

    Args:
        patience_s: how long a transfer waits for its request to be named, on the loop's time;
            None: for ever.
    """

    def __init__(self, patience_s: float | None) -> None:
        self._patience_s = patience_s
        self._named: dict[int, asyncio.Event] = {}

    def __contains__(self, req: int) -> bool:
        return req in self._named and self._named[req].is_set()

    def add(self, req: int) -> None:
        """The router has named it."""
        self._named.setdefault(req, asyncio.Event()).set()

    async def wait(self, transfer: IncomingTransfer) -> None:
        """Until the transfer's request was named.

        Raises:
            ProtocolError: it was not, in the time of a transfer.
        """
        named = self._named.setdefault(transfer.request, asyncio.Event())
        try:
            async with asyncio.timeout(self._patience_s):
                await named.wait()
        except TimeoutError as error:
            raise refusal(transfer, "not announced in time") from error


def refusal(transfer: IncomingTransfer, cause: str) -> ProtocolError:
    """Why a verified transfer is not applied."""
    return ProtocolError("apply KV", f"request {transfer.request}", cause)
