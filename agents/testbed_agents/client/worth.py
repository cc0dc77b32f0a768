"""Which failures are worth another attempt. Pure."""

from __future__ import annotations

ATTEMPTS = 3
"""Attempts at a request at most, the first included."""

_MENDABLE = frozenset(
    {
        "prefill-lost",
        "relay-lost",
        "decode-lost",
        "connection-lost",
        "truncated",
        "closed",
        "stalled",
        "kv-memory-too-small",
    }
)
"""Reasons that lie with one instance, which another one may not share. Too much load, a
contradiction between engines, and the lack of any route would only come again."""


def worth_another(reason: str, number: int) -> bool:
    """Whether a request is tried again after attempt ``number`` (from 0) failed."""
    return number + 1 < ATTEMPTS and reason in _MENDABLE
