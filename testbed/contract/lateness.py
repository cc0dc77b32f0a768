"""Lateness of a live machine, as it is counted and told: buckets of a factor of 2 ** (1 / 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping

from testbed.contract.event import EventLog, Kind

BARRIER_FILE = "barrier.txt"
"""Of the run folder, under a real clock: CLOCK_REALTIME of the barrier, which the lab chose."""
HOST = "host"
"""The node under which the orchestrator writes what it saw of the machine, under a real clock, in
``events/host.jsonl``."""
_PER_OCTAVE = 4


def bucket_of(late_ns: int) -> int:
    """The bucket of a lateness: 0 is 1 ns and less, each further one reaches 19 % higher."""
    return math.ceil(math.log2(max(1, late_ns)) * _PER_OCTAVE)


def bound_ns(bucket: int) -> float:
    """The largest lateness of a bucket."""
    return float(2 ** (bucket / _PER_OCTAVE))


def quantile_ns(waits: Mapping[int, int], share: float) -> float:
    """The lateness that ``share`` of all waits do not exceed; 0 where there is none."""
    total, seen = sum(waits.values()), 0
    for bucket, count in sorted(waits.items()):
        seen += count
        if seen >= share * total:
            return bound_ns(bucket)
    return 0.0


class Lateness:
    """What one process counts: waits that ended after their time, and steps that overran.

    Counts instead of events: a wait costs an addition.
    """

    def __init__(self) -> None:
        self._waits: dict[int, int] = {}
        self._steps = 0
        self._late_steps = 0

    def wait(self, late_ns: int) -> None:
        """A wait ended so long after its time."""
        bucket = bucket_of(late_ns)
        self._waits[bucket] = self._waits.get(bucket, 0) + 1

    def step(self, late: bool) -> None:
        """A step ended; ``late``: it took more than 5 % longer than its profile."""
        self._steps += 1
        self._late_steps += late

    def tell(self, events: EventLog) -> None:
        """Write all of it down."""
        waits = {str(bucket): count for bucket, count in sorted(self._waits.items())}
        events.emit(Kind.CLOCK_TALLY, waits=waits, steps=self._steps, late=self._late_steps)
