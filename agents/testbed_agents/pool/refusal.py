"""Why a transfer did not get a connection."""

from __future__ import annotations

from enum import StrEnum

from testbed.errors import ProtocolError, TestbedError


class Refusal(StrEnum):
    """The reasons of ``pool.refused``."""

    QUEUE_FULL = "queue-full"
    TIMEOUT = "timeout"
    """It waited, or its connection was being opened, for too long."""
    CLOSED = "closed"
    CANCELLED = "cancelled"
    """Nobody wants the transfer any more."""
    NO_PORT = "no-port"
    """Every source port is in use or rests in TIME_WAIT (EADDRNOTAVAIL)."""
    NO_DESCRIPTOR = "no-descriptor"
    """The process or the machine may open no more files (EMFILE, ENFILE)."""
    REFUSED = "refused"
    """Nobody listens there, or the receiver ended the connection before it was of use."""
    UNREACHABLE = "unreachable"
    PEER_FAILED = "peer-failed"
    """An earlier failure was taken to be for good (without the protection ``retry-budget``)."""
    UNANSWERED = "unanswered"
    """Nobody answered in ``opening.ANSWER_NS``: the leg may be down. Another source port, and so
    perhaps leg, is worth an attempt."""


class AcquireError(TestbedError):
    """The pool gave no connection; the request must be reported failed."""

    def __init__(self, subject: str, reason: Refusal) -> None:
        self.reason = reason
        super().__init__("acquire a connection", subject, reason.value, _REMEDY.get(reason, ""))


class OpenError(ProtocolError):
    """A connection could not be opened, for a reason that has a name."""

    def __init__(self, reason: Refusal, subject: str, cause: str) -> None:
        self.reason = reason
        super().__init__("open a connection", subject, f"{reason.value}: {cause}")


_REMEDY = {
    Refusal.QUEUE_FULL: "raise pool.queue or pool.size, or offer less load",
    Refusal.TIMEOUT: "raise pool.acquire_timeout or pool.size, or offer less load",
    Refusal.NO_PORT: "raise pool.ports, or keep connections: TIME_WAIT lasts 60 s",
    Refusal.NO_DESCRIPTOR: "set pool.size, or raise the limit of open files",
}
