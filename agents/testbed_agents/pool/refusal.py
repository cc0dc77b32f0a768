"""Why a transfer did not get a connection."""

from __future__ import annotations

from enum import StrEnum

from testbed.errors import TestbedError


class Refusal(StrEnum):
    """The reasons of ``pool.refused``."""

    QUEUE_FULL = "queue-full"
    TIMEOUT = "timeout"
    CLOSED = "closed"
    CANCELLED = "cancelled"
    """Nobody wants the transfer any more."""


class AcquireError(TestbedError):
    """The pool gave no connection; the request must be reported failed."""

    def __init__(self, subject: str, reason: Refusal) -> None:
        self.reason = reason
        super().__init__("acquire a connection", subject, reason.value, _REMEDY.get(reason, ""))


_REMEDY = {
    Refusal.QUEUE_FULL: "raise pool.queue or pool.size, or offer less load",
    Refusal.TIMEOUT: "raise pool.acquire_timeout or pool.size, or offer less load",
}
