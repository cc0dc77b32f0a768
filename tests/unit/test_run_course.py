"""The course of a run: deeds at their time and in order, samples and looks, and their end."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.lateness import Lateness
from testbed.contract.plan import Plan
from testbed.contract.progress import Mark
from testbed.errors import LabError
from testbed.run.course import Course, take_course
from testbed.run.deed import Deed
from tests.fakes.fake_run import FakeRun
from tests.fakes.pool_plan import make_plan

pytestmark = pytest.mark.unit
S = 10**9


class Players:
    """Agents, sampler, guard and faults in one. Clients end after some rounds."""

    def __init__(self, began_s: float, rounds: int) -> None:
        self.barrier_ns = time.time_ns() - round(began_s * S)
        self.lateness = Lateness()
        self.waits: list[int] = []
        self.samples: list[int] = []
        self.looks: list[int] = []
        self.concluded = 0
        self._rounds = rounds

    def clients_ended(self) -> bool:
        self._rounds -= 1
        return self._rounds < 0

    def watch(self, until_ns: int, also: int | None = None) -> None:
        self.waits.append(until_ns - self.barrier_ns)

    def sample(self, at_ns: int) -> None:
        self.samples.append(at_ns)

    def look(self, at_ns: int) -> None:
        self.looks.append(at_ns)

    def conclude(self) -> None:
        self.concluded += 1


def course(players: Players, folder: Path) -> Course:
    mark = Mark(folder, "course")
    return Course(players, players, players, players, mark)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(FakeRun(), ())


@given(times=st.lists(st.integers(0, 3 * S), max_size=8))
def test_deeds_are_done_once_each_in_the_order_of_their_times(
    plan: Plan, tmp_path_factory: pytest.TempPathFactory, times: list[int]
) -> None:
    done: list[int] = []
    players = Players(began_s=4, rounds=3)
    deeds = [Deed(at, lambda _, at=at: done.append(at)) for at in times]  # type: ignore[misc]
    take_course(plan, course(players, tmp_path_factory.mktemp("run")), deeds)
    assert done == sorted(times)


def test_a_deed_whose_time_has_not_come_is_not_done_but_waited_for(
    plan: Plan, tmp_path: Path
) -> None:
    players = Players(began_s=-100, rounds=2)
    take_course(plan, course(players, tmp_path), [Deed(-10 * S, lambda _: pytest.fail("early"))])
    assert players.waits == [-10 * S] * 2
    assert players.looks == []


def test_what_was_missed_is_not_made_up_for(plan: Plan, tmp_path: Path) -> None:
    players = Players(began_s=2.05, rounds=3)
    take_course(plan, course(players, tmp_path))
    assert players.looks[0] >= 2.05 * S
    assert len(players.looks) == 1
    assert players.samples[0] == 0
    assert len(players.samples) == 2, "one sample, and the one at the end"
    assert players.waits[0] == 0
    assert players.waits[1] > 2 * S
    assert players.concluded == 1


def test_a_client_that_does_not_end_is_an_error(plan: Plan, tmp_path: Path) -> None:
    deadline_s = plan.agents[0].window.deadline_ns / S
    players = Players(began_s=deadline_s + 6, rounds=5)
    with pytest.raises(LabError, match="outlived its deadline"):
        take_course(plan, course(players, tmp_path))
