"""A soak in the guest: what it runs is what ``testbed run`` runs, to the nanosecond."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.conftest import Command

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("staging")]


def test_a_schedule_has_one_timeline_alone_and_in_the_soak(
    testbed: Command, tmp_path: Path
) -> None:
    out = tmp_path / "soak"
    words = ("soak", "--schedules", "2", "--seed", "1", "--kind", "delay", "--kind", "slow")
    done = testbed(*words, "--jobs", "2", "--out", str(out))
    assert done.status == 0, done.out + done.err
    assert "2 of 2 schedules run: 2 pass" in done.out
    lines = (out / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    runs = {run["number"]: run["outcome"] for run in map(json.loads, lines)}
    alone = testbed("run", str(out / "schedules" / "0002.yaml"), "--json")
    assert alone.status == 0, alone.out + alone.err
    assert alone.metrics["timeline_sha256"] == runs[2]["timeline"] != runs[1]["timeline"]
    again = testbed(*words, "--out", str(out), "--resume")
    assert again.status == 0, again.out + again.err
    assert (out / "runs.jsonl").read_text(encoding="utf-8").splitlines() == lines


FOUND = """\
extends: soak
name: found
description: "What the first soaks found"
expect: null
faults:
  - {kind: disconnect, node: [md2, tor-b], at: 1 s, duration: 53 ms, every: 138 ms, times: 5}
  - {kind: kill, node: r1, at: 1500 ms}
  - {kind: pause, node: p2, at: 500 ms, duration: 300 ms}
  - {kind: slow, node: p2, factor: 2.0, at: 600 ms, duration: 100 ms}
"""


def test_what_the_first_soaks_found_is_judged(testbed: Command, tmp_path: Path) -> None:
    """Nodes are connected again in time; who is killed, or stands still, makes no run invalid."""
    scenario, run = tmp_path / "found.yaml", tmp_path / "run"
    scenario.write_text(FOUND, encoding="utf-8")
    done = testbed("run", str(scenario), "--out", str(run))
    assert done.status == 0, done.out + done.err
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    said = {finding["check"]: finding["evidence"] for finding in verdict["findings"]}
    assert said["agents-stopped"].endswith("killed by the plan: r1")
    assert said["faults-kept"].startswith("13 of 13 times")
