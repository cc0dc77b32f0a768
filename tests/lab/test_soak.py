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
