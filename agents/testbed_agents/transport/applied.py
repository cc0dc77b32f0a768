"""What a receiver has applied: a transfer that is sent once more is not applied twice. Pure.

A sender whose acknowledgement was lost with a leg sends the same again, as a later epoch. Whoever
is being applied now is waited for, and what was said to it is said again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from testbed_agents.transport.transfer import INCREMENT, IncomingTransfer

_Key = tuple[int, bool]
"""A request, and whether it is the increment that follows its prompt."""


class Applied:
    """The outcomes of the last ``most`` transfers: "" where it was applied, else why it was not."""

    def __init__(self, most: int = 100_000) -> None:
        self._most = most
        self._outcomes: OrderedDict[_Key, asyncio.Future[str]] = OrderedDict()

    def begin(self, transfer: IncomingTransfer) -> asyncio.Future[str] | None:
        """Another attempt's outcome, perhaps to come; None where this one is to be applied now.

        What was refused may be tried again.
        """
        key = _key(transfer)
        before = self._outcomes.get(key)
        if before is not None and not (before.done() and before.result()):
            return before
        self._outcomes[key] = asyncio.get_running_loop().create_future()
        self._outcomes.move_to_end(key)
        if len(self._outcomes) > self._most:
            self._outcomes.popitem(last=False)
        return None

    def end(self, transfer: IncomingTransfer, reason: str) -> None:
        """It was applied, or refused for ``reason``."""
        outcome = self._outcomes.get(_key(transfer))
        if outcome is not None and not outcome.done():
            outcome.set_result(reason)


def _key(transfer: IncomingTransfer) -> _Key:
    return transfer.request, transfer.epoch >= INCREMENT
