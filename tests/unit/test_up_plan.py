"""The planner of containers on their own: what it may be asked, what it makes, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.contract.note import run_of
from testbed.contract.plan import Plan
from testbed.errors import PlanError, UsageError
from testbed.run.prepare import prepare
from testbed.run.up.plan import Wish, layout_digest, plan_run

pytestmark = pytest.mark.unit


def test_nothing_is_asked_by_an_empty_environment() -> None:
    empty = {"TESTBED_NET": "", "TESTBED_SEED": "", "TESTBED_SLOW": ""}
    assert Wish.of({}) == Wish.of(empty) == Wish(10, None, None)
    assert Wish.of({}).overrides() == ()


def test_what_is_asked_is_heard() -> None:
    wish = Wish.of({"TESTBED_NET": "198", "TESTBED_SEED": "7", "TESTBED_SLOW": "2.5"})
    assert wish == Wish(198, 7, 2.5)
    assert wish.overrides() == ("real_time.slow=2.5",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TESTBED_NET", "0"), ("TESTBED_NET", "224"), ("TESTBED_NET", "10.0"),
        ("TESTBED_SEED", "-1"), ("TESTBED_SEED", "one"), ("TESTBED_SLOW", "0.5"),
        ("TESTBED_SLOW", "nan"), ("TESTBED_SLOW", "1e9"),
    ],
)  # fmt: skip
def test_nonsense_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"{name}={value}"):
        Wish.of({name: value})


def test_the_run_folder_holds_all_that_containers_need(tmp_path: Path) -> None:
    run = plan_run(tmp_path, "hello", "", Wish(11, 5, 9.0))
    assert run.parent == tmp_path / "hello"
    assert run_of(tmp_path) == run
    plan = Plan.model_validate_json((run / "plan.json").read_text("utf-8"))
    assert (plan.seed, plan.scale.slow, plan.clock, plan.lab) == (5, 9.0, "real", "compose")
    for agent in plan.agents:
        config = json.loads((run / "agents" / f"{agent.node}.json").read_text("utf-8"))
        assert config["address"].startswith("11.")
        assert config["events"] == f"{run}/events/{agent.node}.jsonl"
    for name in ("scenario.yaml", "workload.jsonl", "provenance.json", "lab/started.json"):
        assert (run / name).is_file()
    for name in ("events", "logs", "lab/built", "lab/measured"):
        assert (run / name).stat().st_mode & 0o777 == 0o777


def test_a_file_that_was_rendered_from_another_network_is_refused(tmp_path: Path) -> None:
    network = prepare("hello", lab="compose", clock="real").plan.network
    with pytest.raises(PlanError, match="rendered from another network"):
        plan_run(tmp_path, "pdd-hello", layout_digest(network), Wish())
    assert list(tmp_path.iterdir()) == []
