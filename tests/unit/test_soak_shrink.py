"""The shrinker: what is left still fails, is possible, and nothing that was tried is simpler."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.errors import PlanError
from testbed.scenario.timed import OnLinks
from testbed.soak.draw import fault_from
from testbed.soak.schedule import Drawn, Schedule, kind_word
from testbed.soak.shrink import shrink
from testbed.soak.simpler import simpler
from tests.fakes.soak_ground import drawn, ground, planned

pytestmark = pytest.mark.unit
FLAP = {
    "kind": "rate", "link": ["wan", "p1"], "to": "1 Mbit/s", "at": "1234 ms",
    "duration": "777 ms", "every": "1 s", "times": 4,
}  # fmt: skip
STORM = {
    "kind": "jitter", "link": "wan1", "at": "1 s", "duration": "20 ms",
    "jitter": {"spread": "2 ms", "distribution": "normal", "reorder": True},
}  # fmt: skip
schedules = st.builds(
    drawn,
    st.integers(0, 2**62), st.integers(1, 10**6),
)  # fmt: skip


def possible(schedule: Schedule) -> bool:
    try:
        planned(schedule)
    except PlanError:
        return False
    return True


def anything(schedule: Schedule) -> bool:
    return True


def has(schedule: Schedule, kinds: set[str]) -> bool:
    return kinds <= {kind_word(fault) for fault in schedule.faults}


@settings(deadline=None, max_examples=20)
@given(schedules, st.data())
def test_what_is_left_still_fails_is_possible_and_has_only_the_guilty(
    schedule: Schedule, data: st.DataObject
) -> None:
    guilty = data.draw(st.sets(st.sampled_from(schedule.kinds), min_size=1, max_size=2))
    found = shrink(schedule, ground(), lambda one: has(one, guilty), anything, 10_000)
    assert found.least
    assert has(found.schedule, guilty)
    assert len(found.schedule.faults) == len(guilty)
    assert all(fault.times is None for fault in found.schedule.faults)
    for fault in found.schedule.faults:
        assert isinstance(getattr(fault, "link", None), str | None)
        assert isinstance(getattr(fault, "node", ""), str)


@settings(deadline=None, max_examples=60)
@given(schedules)
def test_what_never_fails_again_stays_as_it_is(schedule: Schedule) -> None:
    found = shrink(schedule, ground(), lambda one: False, anything, 10_000)
    assert found.schedule == schedule
    assert found.least


@settings(deadline=None, max_examples=40)
@given(schedules, st.integers(0, 20))
def test_no_more_runs_than_allowed_and_none_twice(schedule: Schedule, most: int) -> None:
    asked: list[Schedule] = []

    def fails(candidate: Schedule) -> bool:
        asked.append(candidate)
        return len(candidate.faults) > 0 and candidate.faults[0].at.ns % 2 == 0

    found = shrink(schedule, ground(), fails, anything, most)
    assert len(asked) == len(set(asked)) == found.runs <= most


@settings(deadline=None, max_examples=200)
@given(schedules)
def test_simpler_faults_are_valid_others_and_never_lead_in_a_circle(schedule: Schedule) -> None:
    fault = schedule.faults[0]
    seen = {fault}
    for _ in range(400):
        following = next(iter(simpler(fault, ground())), None)
        if following is None:
            return
        assert following not in seen
        assert kind_word(following) == kind_word(fault)
        seen.add(following)
        fault = following
    pytest.fail(f"it does not end: {fault}")


def test_what_the_planner_refuses_is_not_run() -> None:
    asked: list[Schedule] = []

    def fails(candidate: Schedule) -> bool:
        asked.append(candidate)
        return any(kind_word(fault) == "jitter" for fault in candidate.faults)

    start = Schedule((fault_from(STORM), fault_from(FLAP)))
    found = shrink(start, ground(), fails, possible, 10_000)
    assert found.least
    (left,) = found.schedule.lines
    assert left.startswith(
        "{kind: jitter, link: wan1, direction: forward, jitter: "
        "{spread: 1 ms, distribution: normal, reorder: false}, at: 0 ms, "
    )
    assert asked
    assert all(possible(one) for one in asked)


def test_strength_matters() -> None:
    """A failure that needs a low rate on one leg keeps it, and loses all else."""

    def fails(schedule: Schedule) -> bool:
        return any(
            kind_word(one) == "rate" and one.to.bps <= 20_000_000 and names(one) & {"wan2"}  # type: ignore[union-attr]
            for one in schedule.faults
        )

    noise = tuple(drawn(5, number).faults[0] for number in range(4))
    start = Schedule((*noise[:2], fault_from(FLAP), *noise[2:]))
    small = shrink(start, ground(), fails, anything, 10_000).schedule
    (left,) = small.faults
    assert small.lines[0].startswith("{kind: rate, link: wan2, direction: forward, to: ")
    assert 10_000_000 < left.to.bps <= 20_000_000  # type: ignore[union-attr]
    assert left.at.ns == 0
    assert left.duration is not None
    assert left.duration.ns < 10_000_000


def names(fault: Drawn) -> set[str]:
    if not isinstance(fault, OnLinks):
        return set()
    named = (fault.link,) if isinstance(fault.link, str) else fault.link
    return {link for name in named for link in ground().members(name)}
