"""What can be wrong with a frame or a transfer, by name."""

from __future__ import annotations

from enum import StrEnum

from testbed.errors import ProtocolError, TestbedError


class Fault(StrEnum):
    """Reasons of ``transfer.failed`` and ``kv.refused``."""

    BAD_MAGIC = "bad-magic"
    BAD_VERSION = "bad-version"
    BAD_CHECKSUM = "bad-checksum"
    BAD_STAMP = "bad-stamp"
    BAD_DIGEST = "bad-digest"
    BAD_HELLO = "bad-hello"
    OVERSIZED = "oversized"
    TRUNCATED = "truncated"
    OUT_OF_ORDER = "out-of-order"
    UNEXPECTED = "unexpected-bytes"
    DUPLICATE = "duplicate"
    LATE = "late"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    CONNECTION_LOST = "connection-lost"
    FULL = "full"
    """There are no pages for it now."""
    ABORTED = "aborted"
    """Its receiver does not want it any more."""
    PART_LOST = "part-lost"
    """Another part of the same transfer failed."""
    STALLED = "stalled"
    """The receiver's kernel has not been heard of for so long that its leg must be down."""


class FrameError(ProtocolError):
    """Bytes that the protocol does not allow; the connection they came on is closed."""

    def __init__(self, reason: Fault, subject: str, cause: str) -> None:
        self.reason = reason
        self.detail = cause
        super().__init__("read a KV frame", subject, f"{reason.value}: {cause}")


class TransferError(ProtocolError):
    """A transfer was not acknowledged; the request must be reported failed.

    ``broken``: its receiver found fault with what came, which may come well another time.
    """

    def __init__(self, reason: Fault, subject: str, cause: str, broken: bool = False) -> None:
        self.reason = reason
        self.broken = broken
        self.detail = cause
        super().__init__("transfer KV", subject, f"{reason.value}: {cause}")


def reason_of(error: TestbedError) -> str:
    """Why nothing was transferred, in the word that is told: its ``reason``, else its class."""
    return str(getattr(error, "reason", type(error).__name__))
