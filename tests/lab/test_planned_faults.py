"""Faults that a scenario schedules: they come, act together, go, and replay exactly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.conftest import Command

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("staging")]

SCENARIO = """\
extends: hello
name: hello-under-faults
description: "Faults of links that overlap, and of a node"
faults:
  - {kind: down, link: wan1, at: 1 s, duration: 200 ms, every: 1 s, times: 3}
  - {kind: delay, link: wan, direction: forward, add: 30 ms, at: 2 s, duration: 1500 ms}
  - {kind: rate, link: wan2, to: 100 Mbit/s, at: 1500 ms, duration: 2 s}
  - {kind: down, link: wan2, direction: backward, at: 4 s, duration: 300 ms}
  - {kind: pause, node: p1, at: 2500 ms, duration: 300 ms}
"""
TIMES = 8
"""Begins, and as many ends: three of the first, two links of the second, one of each other."""


def record(run: Path) -> list[dict[str, object]]:
    lines = (run / "events" / "lab.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if str(event["kind"]).startswith("fault.")]


def finding(run: Path) -> dict[str, object]:
    found = json.loads((run / "verdict.json").read_text(encoding="utf-8"))["findings"]
    (one,) = (one for one in found if one["check"] == "faults-kept")
    assert isinstance(one, dict)
    return one


def test_faults_come_and_go_in_time_and_replay_exactly(testbed: Command, tmp_path: Path) -> None:
    scenario = tmp_path / "faults.yaml"
    scenario.write_text(SCENARIO)
    digests = []
    for name in ("first", "again"):
        run = tmp_path / name
        done = testbed("run", str(scenario), "--out", str(run), "--json")
        assert done.status == 0, done
        digests.append(done.metrics["timeline_sha256"])
        kinds = [event["kind"] for event in record(run)]
        assert kinds.count("fault.began") == kinds.count("fault.ended") == TIMES
        assert str(finding(run)["evidence"]).startswith(f"{TIMES} of {TIMES} times")
    assert digests[0] == digests[1]
    healthy = testbed("run", "hello", "--out", str(tmp_path / "healthy"), "--json")
    assert digests[0] != healthy.metrics["timeline_sha256"], "they did something"


TROUBLE = """\
extends: pdd-hello
name: pdd-trouble
description: "Agents that are slow, stall, and run out of descriptors"
window: {measure: 4 s, drain: 40 s}
faults:
  - {kind: slow, node: md1, factor: 4.0, at: 3 s, duration: 3 s}
  - {kind: stall, node: md2, at: 2 s, duration: 2 s}
  - {kind: descriptors, node: p1, left: 0, at: 1 s, duration: 5 s}
"""


def test_agents_apply_their_own_faults_and_say_so(testbed: Command, tmp_path: Path) -> None:
    scenario, run = tmp_path / "trouble.yaml", tmp_path / "run"
    scenario.write_text(TROUBLE)
    done = testbed("run", str(scenario), "--out", str(run), "--json")
    assert done.status == 0, done
    assert str(finding(run)["evidence"]).startswith("3 of 3 times")
    lines = (run / "events" / "md2.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    began, ended = (e["t"] for e in events if e["kind"].startswith("fault."))
    heard = [e["t"] for e in events if e["kind"] in ("kv.begin", "kv.verified")]
    assert heard
    assert not [t for t in heard if began < t < ended], "it read nothing"


def test_an_impossible_fault_is_refused_before_anything_is_made(
    testbed: Command, tmp_path: Path
) -> None:
    scenario = tmp_path / "faults.yaml"
    scenario.write_text(SCENARIO.replace("link: wan1", "link: wan7"))
    done = testbed("run", str(scenario), "--out", str(tmp_path / "run"))
    assert done.status == 2
    assert f"{scenario}:5: the network has no link 'wan7'" in done.err
    assert not (tmp_path / "run").exists()
