"""From a schedule that fails to a small one that fails in the same way. Pure but for the runs.

First whole faults are left out (delta debugging: halves, then ever smaller parts), then each
that is left is made simpler; both again until neither helps or the runs are used up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from testbed.soak.ground import Ground
from testbed.soak.schedule import Drawn, Schedule
from testbed.soak.simpler import simpler


@dataclass(frozen=True, slots=True)
class Shrunk:
    """What came of it.

    Attributes:
        schedule: the smallest that was seen to fail.
        runs: candidates that were run.
        least: whether no candidate was left: nothing simpler that is tried fails.
    """

    schedule: Schedule
    runs: int
    least: bool


class _UsedUpError(Exception):
    """No more runs are allowed."""


class _Judge:
    """Asks about each candidate once, and only so often."""

    def __init__(self, fails: Callable[[Schedule], bool], most: int) -> None:
        self._fails = fails
        self._most = most
        self._known: dict[Schedule, bool] = {}

    @property
    def runs(self) -> int:
        return len(self._known)

    def fails(self, schedule: Schedule) -> bool:
        if schedule not in self._known:
            if self.runs >= self._most:
                raise _UsedUpError
            self._known[schedule] = self._fails(schedule)
        return self._known[schedule]


def shrink(
    schedule: Schedule,
    ground: Ground,
    fails: Callable[[Schedule], bool],
    possible: Callable[[Schedule], bool],
    most: int,
) -> Shrunk:
    """The smallest schedule found that still fails.

    Args:
        schedule: one that fails.
        fails: runs a candidate, and says whether it fails in the same way.
        possible: whether the planner takes a candidate; others are not run.
        most: runs at most.
    """
    judge = _Judge(fails, most)
    best = schedule
    try:
        while (smaller := _step(best, ground, judge, possible)) is not None:
            best = smaller
    except _UsedUpError:
        return Shrunk(best, judge.runs, False)
    return Shrunk(best, judge.runs, True)


def _step(
    best: Schedule, ground: Ground, judge: _Judge, possible: Callable[[Schedule], bool]
) -> Schedule | None:
    """The first smaller candidate that fails; None where there is none."""
    for candidate in (*_parts(best.faults), *_simpler(best, ground)):
        if possible(candidate) and judge.fails(candidate):
            return candidate
    return None


def _parts(faults: tuple[Drawn, ...]) -> Iterator[Schedule]:
    """Parts of the list, then the list without one of its parts; from halves to single faults."""
    count = 2
    while len(faults) > 1:
        count = min(count, len(faults))
        bounds = [len(faults) * part // count for part in range(count + 1)]
        ranges = list(pairwise(bounds))
        for begin, end in ranges:
            yield Schedule(faults[begin:end])
        if count > 2:
            for begin, end in ranges:
                yield Schedule((*faults[:begin], *faults[end:]))
        if count == len(faults):
            return
        count *= 2


def _simpler(best: Schedule, ground: Ground) -> Iterator[Schedule]:
    for place, fault in enumerate(best.faults):
        for changed in simpler(fault, ground):
            yield Schedule((*best.faults[:place], changed, *best.faults[place + 1 :]))
