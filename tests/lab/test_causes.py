"""A scheduled fault of a small PDD run is named as the root of the delays that it makes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from testbed.metrics import read_events, read_run
from testbed.metrics.attribution.past import Past
from testbed.metrics.attribution.record import Delay
from testbed.metrics.attribution.ways import Way, Ways
from testbed.report.delay_table import sentence
from tests.lab.conftest import Command

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("staging")]

SCENARIO = """\
extends: pdd-hello
name: pdd-delayed
description: "RLD goes after twelve tokens, so that a late KV is a stall at the client"
window: {{measure: 2 s, drain: 30 s}}
workload: {{input: {{kind: fixed, tokens: 2048 tokens}}, arrivals: {{kind: even, every: 500 ms}}}}
pool: {{size: 2}}
serving: {{handoff: {{mode: catch-up, most: 12 tokens, least: 4 tokens}}}}
links: {{wan: {{segmentation: {segmentation}}}}}
faults:
  - {fault}
expect: null
"""
CASES = {
    "down": ("{kind: down, link: wan, at: 1300 ms, duration: 800 ms, name: it}", "wan"),
    "rate": ("{kind: rate, link: wan, to: 5 Mbit/s, at: 1300 ms, duration: 3 s, name: it}", "wan"),
    "loss": (
        "{kind: loss, link: wan1, loss: {kind: random, share: 8 %}, at: 1 s, duration: 5 s, "
        "name: it}",
        "wan1",
    ),
    "pause": ("{kind: pause, node: md1, at: 2200 ms, duration: 800 ms, name: it}", "md1"),
    "stall": ("{kind: stall, node: md1, at: 1200 ms, duration: 2 s, name: it}", "md1"),
}


@pytest.mark.parametrize("kind", CASES)
def test_the_fault_is_the_root_of_what_it_delays(
    testbed: Command, tmp_path: Path, kind: str
) -> None:
    fault, place = CASES[kind]
    scenario, folder = tmp_path / "delayed.yaml", tmp_path / "run"
    segmentation = "frame" if kind == "loss" else "superframe"
    scenario.write_text(SCENARIO.format(fault=fault, segmentation=segmentation))
    done = testbed("run", str(scenario), "--out", str(folder), "--json")
    assert done.status == 0, done
    metrics: dict[str, Any] = done.metrics
    lists = ("stalls", "slow_first_tokens", "slow_transfers")
    delays = [Delay.model_validate(row) for name in lists for row in metrics[name]]
    ours = [delay for delay in delays if delay.fault == "it"]
    assert ours, [(delay.what, delay.root, delay.subject) for delay in delays]
    assert all(delay.chain[-1].subject.startswith(f"it: {kind} on {place}") for delay in ours)
    assert all("fault it" in sentence(delay) for delay in ours)
    if kind in ("down", "rate", "stall"):
        assert metrics["causes"]["stalls"]["by_fault"]["it"] > 0
    assert "fault it" in (folder / "report.html").read_text(encoding="utf-8")
    if kind != "down":  # what an outage stalls is sent once more, over another leg
        legs_are_those_of_the_model(folder)


def legs_are_those_of_the_model(folder: Path) -> None:
    """Each leg was seen to carry what the model of the hash gives it, and headers."""
    run, events = read_run(folder), read_events(folder)
    past, ways = Past(run, events), Ways(run.plan)
    given: Counter[Way] = Counter()
    for one in past.sent:
        for hop in ways.of_connection(*one.pair, one.conn):
            given.update({way: one.size for way in hop if way.link.startswith("wan")})
    seen: Counter[Way] = Counter()
    lines = (folder / "events" / "lab.jsonl").read_text(encoding="utf-8").splitlines()
    for event in map(json.loads, lines):
        if event["kind"] == "link.sample":
            seen[Way(event["link"], event["dir"])] += event["size"]
    assert given
    for way, size in given.items():
        assert size <= seen[way] <= 1.2 * size + 1_000_000, way
