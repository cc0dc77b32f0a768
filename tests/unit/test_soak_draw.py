"""The generator of random schedules: possible by construction, repeatable, and of every kind."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.role import Role
from testbed.errors import UsageError
from testbed.scenario.injection import KINDS, KillFault, PauseFault, kind_of
from testbed.scenario.timed import OnLinks
from testbed.soak.draw import RULES, UNDRAWN, draw_schedule, drawable
from testbed.soak.rule import spans
from testbed.soak.schedule import Schedule, kind_word
from tests.fakes.soak_ground import base, drawn, ground, planned

pytestmark = pytest.mark.unit
seeds = st.integers(0, 2**62)
numbers = st.integers(1, 10**6)


def test_every_kind_is_drawn_or_has_a_reason() -> None:
    kinds = {kind_of(kind) for kind in KINDS}
    assert set(RULES) | set(UNDRAWN) == kinds
    assert not set(RULES) & set(UNDRAWN)
    assert all(len(reason) > 20 for reason in UNDRAWN.values())


@pytest.mark.parametrize("name", ["soak", "pdd-hello", "hello", "pool-narrow-even"])
def test_the_planner_takes_whatever_is_drawn(name: str) -> None:
    for number in range(40):
        schedule = drawn(7, number, name)
        assert len(planned(schedule, name)) == len(schedule.faults) >= 1, schedule.lines


@settings(deadline=None, max_examples=25)
@given(seeds, numbers)
def test_any_seed_and_number_give_a_possible_schedule_and_always_the_same(
    seed: int, number: int
) -> None:
    schedule = drawn(seed, number)
    assert drawn(seed, number) == schedule
    assert planned(schedule)


@settings(deadline=None, max_examples=60)
@given(seeds, numbers)
def test_every_fault_comes_for_sure_while_requests_are_still_asked(seed: int, number: int) -> None:
    last_ns = max(request.at_ns for request in base().requests)
    for fault in drawn(seed, number).faults:
        begins = [span.begin_ns for span in spans(fault)]
        assert min(begins) <= last_ns
        if fault.probability.fraction < 1:
            assert max(begins) <= last_ns, "the one that comes true may be the last"


def test_numbers_and_seeds_give_different_schedules() -> None:
    seen = {drawn(seed, number) for seed in range(5) for number in range(40)}
    assert len(seen) > 195


def test_all_kinds_targets_and_forms_of_time_occur() -> None:
    faults = [one for number in range(300) for one in drawn(1, number).faults]
    assert {kind_word(fault) for fault in faults} == {*RULES} - {"ports"}, "its pools stand"
    assert {f.direction for f in faults if isinstance(f, OnLinks)} == {
        "both", "forward", "backward",
    }  # fmt: skip
    linked = {f.link for f in faults if isinstance(f, OnLinks) and isinstance(f.link, str)}
    assert linked == {link.name for link in ground().links} | set(ground().classes)
    assert {f.duration is None for f in faults} == {True, False}
    assert {f.times is None for f in faults} == {True, False}
    assert {f.probability.fraction for f in faults} == {0.5, 1.0}
    assert {len(drawn(1, number).faults) for number in range(200)} == set(range(1, 7))


def test_faults_of_one_schedule_meet_and_touch() -> None:
    """Meeting is what random schedules are for; drawing them one after the other would miss it."""
    meet = touch = 0
    for number in range(200):
        times = [spans(fault) for fault in drawn(1, number).faults]
        pairs = [(a, b) for place, a in enumerate(times) for b in times[:place]]
        meet += any(x.overlaps(y) for a, b in pairs for x in a for y in b)
        touch += any(x.begin_ns in (y.begin_ns, y.end_ns) for a, b in pairs for x in a for y in b)
    assert meet > 60
    assert touch > 20


def test_no_client_is_killed_or_stands_still_to_the_end() -> None:
    clients = set(ground().agents()) - set(ground().agents(Role.CLIENT))
    assert clients
    for number in range(300):
        for fault in drawn(3, number).faults:
            if isinstance(fault, KillFault | PauseFault):
                named = {fault.node} if isinstance(fault.node, str) else set(fault.node)
                assert fault.duration is not None or not named & clients


def test_only_the_kinds_that_are_asked_for_are_drawn() -> None:
    choices = drawable(ground(), ["down", "kill"])
    only = [draw_schedule(1, number, ground(), choices) for number in range(50)]
    assert {kind for schedule in only for kind in schedule.kinds} == {"down", "kill"}


@pytest.mark.parametrize(("kind", "why"), [("restart", "only containers"), ("dwn", "no such kind")])
def test_a_kind_that_cannot_be_drawn_is_refused(kind: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        drawable(ground(), [kind])


def test_superframes_carry_no_loss() -> None:
    kinds = {kind_of(choice.rule.model) for choice in drawable(ground("hello"))}
    assert not kinds & {"loss", "duplicate", "corrupt"}
    assert isinstance(draw_schedule(1, 1, ground("hello")), Schedule)
