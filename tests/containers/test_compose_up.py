"""Plain ``docker compose up``: a run with shaped links, a verdict as exit status, nothing left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.lab.compose.engine import Engine
from testbed.lab.compose.images import Image, Target
from testbed.lab.guest.kernel.cache import kernel_path
from tests.containers.guest_up import Up, stocked_engine, up_in_guest

pytestmark = pytest.mark.containers
LATE = {"on-time"}
"""Checks that a busy machine may fail; then the run is invalid, and says so."""
CHANGES = {"TESTBED_NET": "11", "TESTBED_SLOW": "8"}
"""Other addresses, and twice the slow motion: machines that run tests are busy."""
Images = dict[Target, Image]


@pytest.fixture(scope="module")
def guest_engine(engine: Engine, images: Images) -> Iterator[Path]:
    if kernel_path() is None:
        pytest.skip("no lab kernel is built on this machine: testbed kernel build")
    with stocked_engine(engine, images) as copy:
        yield copy


@pytest.fixture(scope="module")
def up(guest_engine: Path, images: Images, tmp_path_factory: pytest.TempPathFactory) -> Up:
    """The default profile, as a user calls it, at addresses of the user's choice."""
    folder = tmp_path_factory.mktemp("up") / "default"
    return up_in_guest(folder, guest_engine, images, changes=CHANGES)


def findings(up: Up) -> dict[str, str]:
    verdict = json.loads((up.run / "verdict.json").read_text("utf-8"))
    return {one["check"]: one["status"] for one in verdict["findings"] if one["decides"]}


def test_the_run_takes_place_and_every_check_is_made(up: Up) -> None:
    found = findings(up)
    assert {check for check, status in found.items() if status != "pass"} <= LATE, up.words
    assert len(found) > 15
    assert (up.run / "report.html").stat().st_size > 100_000


def test_the_exit_status_is_the_verdicts(up: Up) -> None:
    verdict = json.loads((up.run / "verdict.json").read_text("utf-8"))
    assert up.status == {"pass": 0, "fail": 1, "invalid": 3}[verdict["verdict"]]


def test_the_right_scenario_ran_at_its_scale_and_its_addresses(up: Up) -> None:
    plan = json.loads((up.run / "plan.json").read_text("utf-8"))
    assert (plan["scenario"], plan["lab"], plan["clock"]) == ("pdd-hello", "compose", "real")
    assert plan["scale"]["slow"] == 8
    assert {agent["address"].split(".")[0] for agent in plan["agents"]} == {"11"}
    metrics = json.loads((up.run / "metrics.json").read_text("utf-8"))
    assert metrics["requests"]["completed"] == metrics["requests"]["offered"]
    assert metrics["timeline_sha256"] is None


def test_every_link_was_measured_by_its_own_wire(up: Up) -> None:
    plan = json.loads((up.run / "plan.json").read_text("utf-8"))
    rows = json.loads((up.run / "fidelity.json").read_text("utf-8"))["measured"]
    assert {row["link"] for row in rows} == {link["name"] for link in plan["network"]["links"]}
    assert all(row["ok"] for row in rows)


def test_down_leaves_nothing(up: Up) -> None:
    assert up.down == 0
    assert up.left == ()


def test_nobody_is_killed(up: Up) -> None:
    assert "exited with code 137" not in up.words


def test_it_is_quick(up: Up, record_property: pytest.RecordProperty) -> None:
    """How quick depends on who else uses the machine, so the figure is recorded, not judged."""
    record_property("first_token_s", up.first_token_s())
    print(f"first token after {up.first_token_s():.1f} s; {up.stages_s()}")
    assert up.first_token_s() > 0


def test_runs_that_nobody_may_write_is_one_clear_message(
    guest_engine: Path, images: Images, tmp_path: Path
) -> None:
    up = up_in_guest(tmp_path / "up", guest_engine, images, owner=1234)
    assert up.status == 2
    assert "it belongs to 1234:1234, and containers run as 10001:10001" in up.words
    assert "remedy: let them run as its owner: TESTBED_USER=1234:1234 docker compose up" in up.words
    assert up.left == ()
