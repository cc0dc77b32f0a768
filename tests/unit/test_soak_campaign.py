"""A soak on disk: every schedule a scenario file, resumed where it stopped, findings made small."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.errors import ExitStatus, UsageError
from testbed.run.prepare import Prepared, prepare
from testbed.scenario import load_scenario
from testbed.soak import campaign
from testbed.soak.campaign import Order, soak
from testbed.soak.outcome import Came, Outcome
from testbed.soak.schedule import Schedule, Stage, fingerprint, scenario_text
from tests.fakes.soak_ground import base, drawn, planned

pytestmark = pytest.mark.unit
Attempt = Callable[[Path, Path, threading.Event, float, bool], Outcome]


class Lab:
    """Stands for the lab: a run fails where its scenario has both of two kinds."""

    def __init__(self, guilty: tuple[str, ...]) -> None:
        self.guilty = guilty
        self.ran: list[str] = []

    def attempt(
        self, scenario: Path, folder: Path, stop: threading.Event, stuck_after_s: float, keep: bool
    ) -> Outcome:
        kinds = {fault.kind for fault in load_scenario(str(scenario)).file.faults}
        self.ran.append(scenario.stem)
        if not self.guilty or not set(self.guilty) <= kinds:
            return Outcome(came=Came.PASS, asked=12, failed=3, reasons={"deadline": 3})
        return Outcome(came=Came.FAIL, check="some-check", pattern="it broke", words="it broke 7")


def known(name: str, place: Path) -> Prepared:
    """The base as it was planned before; a candidate that the planner takes, as the base."""
    if name == "soak":
        return base()
    planned(Schedule(load_scenario(name).file.faults))
    return base()


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Lab]:
    def use(*guilty: str) -> Lab:
        made = Lab(guilty)
        monkeypatch.setattr(campaign, "attempt", made.attempt)
        monkeypatch.setattr(campaign, "prepare", known)
        monkeypatch.setattr(campaign, "stamp", lambda: {"kernel": "k"})
        return made

    return use


def order(out: Path, **changes: object) -> Order:
    wanted: dict[str, object] = {"scenario": "soak", "schedules": 6, "seed": 3, "out": out}
    return Order(**{**wanted, **changes})  # type: ignore[arg-type]


def silent(words: str) -> None:
    pass


def test_every_schedule_is_run_once_counted_and_kept_as_a_scenario(
    tmp_path: Path, lab: Callable[..., Lab]
) -> None:
    made = lab()
    found = soak(order(tmp_path / "s", jobs=2), silent)
    assert sorted(made.ran) == [f"{n:04}" for n in range(1, 7)]
    assert found.came == {"pass": 6}
    assert (found.requests, found.requests_failed, found.reasons) == (72, 18, {"deadline": 18})
    assert found.exit_status is ExitStatus.PASS
    assert json.loads((tmp_path / "s" / "soak.json").read_text())["run"] == 6
    for number in range(1, 7):
        prepared = prepare(str(tmp_path / "s" / "schedules" / f"{number:04}.yaml"))
        wanted = drawn(3, number).faults
        assert prepared.scenario.file.faults == wanted
        assert len(prepared.plan.faults) == len(wanted)


def test_it_goes_on_where_it_stopped(tmp_path: Path, lab: Callable[..., Lab]) -> None:
    made = lab()
    soak(order(tmp_path / "s", schedules=2), silent)
    with pytest.raises(UsageError, match="a soak is there already"):
        soak(order(tmp_path / "s"), silent)
    with (tmp_path / "s" / "runs.jsonl").open("a") as file:
        file.write('{"key": "cut sho')
    found = soak(order(tmp_path / "s", resume=True), silent)
    assert made.ran == [f"{n:04}" for n in range(1, 7)]
    assert found.run == 6


def test_it_does_not_go_on_with_something_else(tmp_path: Path, lab: Callable[..., Lab]) -> None:
    lab()
    soak(order(tmp_path / "s", schedules=1), silent)
    with pytest.raises(UsageError, match="another scenario, seed"):
        soak(order(tmp_path / "s", seed=4, resume=True), silent)
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "mine").write_text("")
    with pytest.raises(UsageError, match="something else"):
        soak(order(tmp_path / "t", resume=True), silent)


def test_no_run_begins_when_the_time_is_up(tmp_path: Path, lab: Callable[..., Lab]) -> None:
    made = lab()
    found = soak(order(tmp_path / "s", minutes=0), silent)
    assert made.ran == []
    assert (found.asked, found.run) == (6, 0)


def test_a_finding_is_made_small_once_and_its_scenario_loads(
    tmp_path: Path, lab: Callable[..., Lab]
) -> None:
    schedules = [drawn(3, number) for number in range(1, 40)]
    number, kinds = next((n, s.kinds[:2]) for n, s in enumerate(schedules, 1) if len(s.kinds) > 3)
    lab(*kinds)
    found = soak(order(tmp_path / "s", schedules=number + 3, shrink_runs=400), silent)
    (one,) = found.findings
    assert one.label == "fail: some-check: it broke"
    assert number in one.numbers
    assert found.exit_status is ExitStatus.FAIL
    small = tmp_path / "s" / "minimal" / f"{one.numbers[0]:04}.yaml"
    assert one.minimal == str(small)
    assert {fault.kind for fault in load_scenario(str(small)).file.faults} == set(kinds)
    first = small.read_text().splitlines()[:2]
    assert first[0].startswith(
        f"# testbed soak soak --seed 3: schedule {one.numbers[0]}, made small"
    )
    assert first[1] == "# fail: some-check: it broke"
    assert load_scenario(str(small)).seed == load_scenario(
        str(tmp_path / "s" / "schedules" / f"{one.numbers[0]:04}.yaml")
    ).seed  # fmt: skip


def test_a_base_that_does_not_ship_is_written_out_whole(tmp_path: Path) -> None:
    schedule = drawn(1, 3)
    scenario = base().scenario
    path = tmp_path / "own.yaml"
    own = scenario.file.model_dump(mode="json", exclude_none=True)
    path.write_text(scenario_text(Stage("soak", own), schedule, "own", 5, "why"))
    loaded = load_scenario(str(path))
    assert loaded.file.faults == schedule.faults
    assert loaded.links == scenario.links
    assert (loaded.seed, loaded.name) == (5, "own")


def test_equal_schedules_have_equal_fingerprints() -> None:
    one, other = drawn(1, 1), drawn(1, 2)
    assert fingerprint(one, 1) == fingerprint(drawn(1, 1), 1)
    assert len({fingerprint(one, 1), fingerprint(one, 2), fingerprint(other, 1)}) == 3


def test_a_base_with_faults_of_its_own_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "faulty.yaml"
    path.write_text(
        "extends: soak\nname: faulty\ndescription: d\nfaults: [{kind: down, link: wan1, at: 1 s}]\n"
    )
    with pytest.raises(UsageError, match="faults of its own"):
        soak(order(tmp_path / "s", scenario=str(path)), silent)
    assert not (tmp_path / "s").exists()
