"""Little's law L = lambda x W over the measuring window, as a test of the clocks.

L is the time average of (waiting + holding a connection), integrated from the times at
which pool events happened. lambda x W is the sum of the durations that the agents
*reported* (wait, then acquired to acknowledged), clipped to the window, over its length.
Both describe one quantity by different clocks, so they agree whatever the load; a
missing event, a swapped unit or a stopped timer drives them apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from testbed.checks.case import Case
from testbed.checks.finding import Finding, Status, found
from testbed.checks.pool_replay import PairName, pool_steps
from testbed.contract.event import Kind

TOLERANCE = 0.01
"""Relative difference allowed: a connection is released a little after the
acknowledgement, and failed transfers report no duration."""
FLOOR = 0.05
"""Absolute difference allowed, in connections; near-empty pools have no ratio to speak of."""


@dataclass(slots=True)
class _Stay:
    queued: int
    acquired: int | None = None
    wait_ns: int = 0
    released: int | None = None
    duration_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Both sides of the law; counts are in transfers, times in seconds."""

    measured: float
    """L: time average of transfers that wait or hold a connection."""
    reported: float
    """Reported stays, clipped to the window, over its length."""
    arrivals_per_s: float
    mean_stay_s: float
    """Mean reported stay of transfers that queued within the window."""


class LittlesLaw:
    """Occupancy from timestamps equals occupancy from reported durations."""

    name = "littles-law"
    claim = "Pool occupancy obeys Little's law."

    def examine(self, case: Case) -> Finding:
        """Compare both sides of the law."""
        law = occupancy(case)
        difference = abs(law.measured - law.reported)
        evidence = (
            f"L = {law.measured:.2f} from timestamps, {law.reported:.2f} from reported durations; "
            f"{law.arrivals_per_s:.2f}/s x {law.mean_stay_s:.3f} s = "
            f"{law.arrivals_per_s * law.mean_stay_s:.2f} for arrivals of the window"
        )
        broken: list[str] = []
        if difference > max(FLOOR, TOLERANCE * law.measured):
            broken.append(f"the two sides differ by {difference:.3f} transfers")
        return found(self.name, self.claim, evidence, broken, Status.INVALID)


def occupancy(case: Case) -> Occupancy:
    """Compute both sides over the measuring window."""
    begin, end = case.window.begin_ns, case.window.end_ns
    stays = _stays(case)
    measured = reported = 0
    inside: list[int] = []
    for stay in stays:
        left = _end(stay, case.window.deadline_ns)
        measured += _overlap(stay.queued, left, begin, end)
        told = left - stay.queued
        if stay.acquired is not None and stay.duration_ns is not None:
            told = stay.wait_ns + stay.duration_ns
        reported += _overlap(stay.queued, stay.queued + told, begin, end)
        if begin <= stay.queued < end:
            inside.append(told)
    seconds = (end - begin) / 1e9
    return Occupancy(
        measured=measured / (end - begin),
        reported=reported / (end - begin),
        arrivals_per_s=len(inside) / seconds,
        mean_stay_s=sum(inside) / len(inside) / 1e9 if inside else 0.0,
    )


def _stays(case: Case) -> list[_Stay]:
    stays: list[_Stay] = []
    current: dict[tuple[PairName, int], _Stay] = {}
    for pair, step in pool_steps(case.history):
        key = (pair, step.req)
        if step.kind is Kind.POOL_QUEUED:
            current[key] = _Stay(step.t)
            stays.append(current[key])
        elif key in current:
            if step.kind is Kind.POOL_ACQUIRED:
                current[key].acquired = step.t
                current[key].wait_ns = step.wait_ns
            elif step.kind in (Kind.POOL_RELEASED, Kind.POOL_REFUSED):
                current[key].released = step.t
    for step in case.history.of(Kind.TRANSFER_ACKED):
        stay = current.get(((step.node, step.peer), step.req))
        if stay is not None:
            stay.duration_ns = step.duration_ns
    return stays


def _end(stay: _Stay, deadline: int) -> int:
    return deadline if stay.released is None else stay.released


def _overlap(start: int, stop: int, begin: int, end: int) -> int:
    return max(0, min(stop, end) - max(start, begin))
