"""Whether and when a transfer is tried again, and in how many parts. Pure.

Each attempt has an epoch of its own, so that its receiver can tell what is late.
"""

from __future__ import annotations

from dataclasses import dataclass

import xxhash

from testbed.contract.guard import Guard
from testbed_agents.transport.fault import Fault, TransferError

PASSING = frozenset(
    {
        Fault.TIMEOUT, Fault.CONNECTION_LOST, Fault.PART_LOST, Fault.FULL, Fault.TRUNCATED,
        Fault.STALLED,
    }
)  # fmt: skip
"""Reasons that may be gone the next time. What a receiver does not want stays unwanted."""
MOST_TURNS = 64


@dataclass(frozen=True, slots=True)
class Retries:
    """Rule of one sender.

    Attributes:
        guard: budget and first pause.
        seed: of the run; what is added to a pause is drawn from it.
        bounded: with back-off and a budget; else a full receiver is asked again at once, for ever,
            and nothing else is ever tried again.
        divides: whether what took too long is sent again in parts.
    """

    guard: Guard
    seed: int
    bounded: bool = True
    divides: bool = True

    def again(self, attempt: int, error: TransferError) -> bool:
        """Whether attempt ``attempt`` (from 0) that failed so is followed by another."""
        if not self.bounded:
            return error.reason is Fault.FULL
        return attempt < self.guard.retries and (error.broken or error.reason in PASSING)

    def for_good(self, error: TransferError) -> bool:
        """Whether a failure is taken to be that of the peer, from now on."""
        return not self.bounded and error.reason in PASSING

    def pause_ns(self, request: int, attempt: int) -> int:
        """Time to let pass before the attempt after ``attempt``."""
        if not self.bounded:
            return 0
        whole = self.guard.backoff_ns << attempt
        draw = xxhash.xxh3_64_intdigest(f"{self.seed} retry {request} {attempt}".encode())
        return whole + whole * (draw % 1_000) // 2_000

    def turns(self, turns: int, reason: Fault, blocks: int) -> int:
        """Parts of the next attempt, where one in ``turns`` parts failed so."""
        if not self.divides or reason is not Fault.TIMEOUT:
            return turns
        return max(1, min(2 * turns, blocks, MOST_TURNS))
