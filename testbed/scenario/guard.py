"""The ``guard:`` part of a scenario: pages to land in, retries, and bounds beyond the pool's."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from testbed.contract.guard import MOST_PAGES, MOST_RETRIES, Guard
from testbed.contract.record import Record
from testbed.scenario.document import KeyPath
from testbed.units import Duration, Size

Pages = Annotated[int, Field(strict=True, ge=1, le=MOST_PAGES)]
RetryCount = Annotated[int, Field(strict=True, ge=0, le=MOST_RETRIES)]


class GuardChoice(Record):
    """Bounds of the transfer path; left out, a transfer is tried once and pages never end."""

    pages: Pages | None = None
    """Pages of every receiver, a block of KV each; None: as many as are needed."""
    retries: RetryCount = 0
    """How often a transfer that failed for a passing reason is tried again."""
    backoff: Duration = Duration(100_000_000)
    """Pause before the first retry; each further one is twice as long."""
    stall_timeout: Duration | None = None
    """A payload of which no byte moves for so long has failed; None: ``transfer_timeout`` alone."""
    queue_bytes: Size | None = None
    """Most bytes that wait for a pair's connections or are on them; None: no bound."""

    def resolve(self) -> Guard:
        """The same as agents see it, in integers."""
        return Guard(
            pages=self.pages or 0,
            retries=self.retries,
            backoff_ns=self.backoff.ns,
            stall_timeout_ns=self.stall_timeout.ns if self.stall_timeout else 0,
            queue_bytes=self.queue_bytes.bytes if self.queue_bytes else 0,
        )

    def faults(self) -> tuple[tuple[KeyPath, str], ...]:
        """Values that would do nothing, as (key, reason)."""
        wrong: list[tuple[KeyPath, str]] = []
        if self.backoff.ns == 0:
            wrong.append((("guard", "backoff"), "must be longer than 0 ns"))
        if self.stall_timeout is not None and self.stall_timeout.ns == 0:
            wrong.append((("guard", "stall_timeout"), "must be longer than 0 ns"))
        if self.queue_bytes is not None and self.queue_bytes.bytes == 0:
            wrong.append((("guard", "queue_bytes"), "must be more than 0 B; null is no bound"))
        return tuple(wrong)
