"""How transfers of KV are guarded: pages to land in, retries, and bounds beyond the pool's."""

from __future__ import annotations

from pydantic import Field

from testbed.contract.record import Record

MOST_PAGES = 1_000_000
MOST_RETRIES = 16


class Guard(Record):
    """Bounds of the transfer path of every pair. The defaults are those of a plan without any."""

    pages: int = Field(default=0, ge=0, le=MOST_PAGES)
    """Pages of a receiver, each for a block that arrives; 0: as many as are needed."""
    retries: int = Field(default=0, ge=0, le=MOST_RETRIES)
    """How often a transfer that failed for a passing reason is tried again."""
    backoff_ns: int = Field(default=100_000_000, gt=0)
    """Pause before the first retry; each further one is twice as long, and up to half more."""
    stall_timeout_ns: int = Field(default=0, ge=0)
    """A payload of which no byte moves for so long has failed; 0: the transfer's time alone."""
    queue_bytes: int = Field(default=0, ge=0)
    """Most bytes that wait for a pair's connections or are on them; 0: no bound. One transfer is
    admitted whatever its size."""


UNGUARDED = Guard()
"""What a plan does not say."""
