"""A run stands at its breakpoints until it is told to go on, and shows how it stands."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.contract.breakpoint import HOLD, Picture, go_on, picture_path, standing
from testbed.contract.progress import FOLDER
from testbed.lab.guest.progress import Progress, read_progress
from testbed.lab.tc.counters import DirectionCounters
from testbed.report.standing import standing_tables
from testbed.run.attend import attended
from testbed.run.standstill import Standstill
from tests.fakes.fake_run import FakeRun
from tests.fakes.pool_plan import make_plan
from tests.unit.test_lab_sockets import LIST

pytestmark = pytest.mark.unit
S = 10**9
NOW = Progress(0, "lab", 0)


class World:
    """A lab of one node, and the samples of its links."""

    def __init__(self, folder: Path) -> None:
        (folder / "7" / "net").mkdir(parents=True)
        (folder / "7" / "net" / "tcp").write_text(LIST)
        self._folder = folder

    def paths(self) -> Mapping[str, str]:
        return {"p1": f"{self._folder}/7/ns/net"}

    @property
    def latest(self) -> dict[tuple[str, str], DirectionCounters]:
        return {("wan1", "forward"): DirectionCounters(9_000, 6, 1, 2, 3_000, 1_500)}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    (run / FOLDER).mkdir(parents=True)
    (run / "events").mkdir()
    return run


def still(run: Path, *breakpoints: int) -> Standstill:
    world = World(run.parent / "proc")
    plan = make_plan(FakeRun(), ()).model_copy(update={"breakpoints": breakpoints})
    return Standstill(plan, run, world, world)  # type: ignore[arg-type]


def until_standing(run: Path) -> Picture:
    patience = time.monotonic() + 20
    while (picture := standing(run)) is None:
        assert time.monotonic() < patience, "it does not stand"
    return picture


def test_it_stands_until_it_is_let_go_and_marks_progress_meanwhile(run: Path) -> None:
    one = still(run, 2 * S)
    one.reached(S, 5)
    assert standing(run) is None
    held = threading.Thread(target=one.reached, args=(2 * S, 7 * S))
    held.start()
    picture = until_standing(run)
    assert (picture.at_ns, len(picture.sockets["p1"]), picture.links[0].backlog_bytes) == (
        2 * S, 3, 3_000,
    )  # fmt: skip
    patience = time.monotonic() + 20
    while (first := read_progress(run)).marks == 0:
        assert time.monotonic() < patience
    while read_progress(run).marks == first.marks:
        assert time.monotonic() < patience, "it looks stuck"
    assert read_progress(run).virtual_ns == 7 * S, "its clock does not move"
    assert held.is_alive()
    assert go_on(run)
    held.join(20)
    assert not held.is_alive()
    assert standing(run) is None
    assert not go_on(run)
    one.reached(3 * S, 9)


def test_breakpoints_that_were_passed_at_once_are_one(run: Path) -> None:
    one = still(run, S, 2 * S)
    held = threading.Thread(target=one.reached, args=(2 * S, 0))
    held.start()
    until_standing(run)
    go_on(run)
    held.join(20)
    one.reached(2 * S, 0)
    assert sorted(path.name for path in (run / "breakpoints").iterdir()) == ["2s.json"]


def test_who_attends_is_told_once_and_enter_lets_it_go_on(run: Path) -> None:
    said: list[str] = []
    pressed = [False, True]
    looked: list[float] = []
    look = attended(run, lambda _, wall_s: looked.append(wall_s), said.append,
                    lambda: pressed.pop(0))  # fmt: skip
    look(NOW, 0.0)
    path = picture_path(run, 2_500_000_000)
    assert path.name == "2500ms.json"
    path.parent.mkdir()
    path.write_text(Picture(at_ns=2_500_000_000, links=(), sockets={}).model_dump_json())
    (run / HOLD).write_text("breakpoints/2500ms.json")
    for wall_s in (1.0, 2.0, 3.0):
        look(NOW, wall_s)
    assert len(said) == 1
    assert "2.5 s" in said[0]
    assert "testbed fault go" in said[0]
    assert not (run / HOLD).exists()
    assert looked == [0.0, 1.0, 2.0, 3.0]


def test_a_look_shows_links_pools_and_sockets(run: Path) -> None:
    lines = [
        '{"t":1,"node":"p1","seq":0,"kind":"agent.ready","size":0}',
        '{"t":2000000000,"node":"p1","seq":1,"kind":"pool.queued","size":0,"peer":"md1","req":3,'
        '"busy":4,"waiting":1}',
        '{"t":3000000000,"node":"p1","seq":2,"kind":"pool.queued","size":0,"peer":"md1","req":4,'
        '"busy":4,"waiting":2}',
        '{"t":4000000000,"node":"p1","seq":3,"kind":"pool.queued","pe',
    ]
    (run / "events" / "p1.jsonl").write_text("\n".join(lines))
    one = still(run, S)
    held = threading.Thread(target=one.reached, args=(S, 0))
    held.start()
    links, pools, sockets = standing_tables(run, until_standing(run))
    go_on(run)
    held.join(20)
    assert links.rows[0] == ("wan1", "forward", "9.00 kB", "3.00 kB", "1.50 kB", "1", "2")
    assert pools.rows == (("p1", "md1", "4", "2", "3.000 s"),)
    assert [row[1] for row in sockets.rows] == ["established", "listen", "time-wait"]
    assert sockets.rows[0] == ("p1", "established", "1", "65.5 kB", "16.0 B")
    assert sockets.rows[1][4] == "3"
