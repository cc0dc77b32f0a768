"""Faults of packets and connections on the real kernel hit what they name, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.conftest import Command

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("staging")]

BASE = """\
extends: hello
name: hello-picked
description: "Faults of packets and connections"
links: {wan: {rtt: 20 ms, loss: none, segmentation: frame}}
"""
PICKED = """\
tcp: {congestion: dctcp}
faults:
  - {kind: blackhole, link: wan, between: [p1, md1], port: data, direction: forward,
     at: 1600 ms, duration: 50 ms}
  - {kind: mtu, link: wan, above: 1400 B, at: 3150 ms, duration: 20 ms}
  - {kind: mark, link: wan, share: 10 %, at: 1 s, duration: 8 s}
  - {kind: reorder, link: wan, share: 5 %, at: 3200 ms, duration: 100 ms}
  - {kind: hold, link: wan, direction: forward, stop: 2 ms, each: 8 ms, at: 5600 ms, duration: 1 s}
  - {kind: traffic, node: [p1, tor-a], to: md1, flows: 2, at: 6700 ms, duration: 200 ms,
     burst: {on: 20 ms, off: 20 ms}}
  - {kind: blackhole, link: wan, port: 9, at: 1 s, duration: 8 s, name: nobody}
"""
SINGLE = ("blackhole-1", "mtu-2", "mark-3", "hold-5", "traffic-6")


def lab_events(run: Path, name: str = "lab") -> list[dict[str, object]]:
    lines = (run / "events" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def hits(run: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for event in lab_events(run):
        if event["kind"] == "fault.ended" and "hits" in event:
            name = str(event["fault"])
            found[name] = found.get(name, 0) + int(str(event["hits"]))
    return found


def test_they_hit_what_they_name_and_replay_exactly(testbed: Command, tmp_path: Path) -> None:
    scenario = tmp_path / "faults.yaml"
    scenario.write_text(BASE + PICKED)
    digests = []
    for name in ("first", "again"):
        done = testbed("run", str(scenario), "--out", str(tmp_path / name), "--json")
        assert done.status == 0, done
        digests.append(done.metrics["timeline_sha256"])
    found = hits(tmp_path / "first")
    assert {name for name, count in found.items() if count} == set(SINGLE)
    assert found["nobody"] == 0, "what does not fit passes"
    assert digests[0] == digests[1]
    assert found == hits(tmp_path / "again")


def worked(run: Path, agent: str) -> list[dict[str, object]]:
    """Its events from its first transfer on, and since then.

    A plan with faults is longer to read, so the agents of two plans meet at barriers some
    microseconds apart; and they are told to end when all clients have.
    """
    around = ("agent.ready", "barrier", "agent.stop")
    events = [event for event in lab_events(run, agent) if event["kind"] not in around]
    since = int(str(events[0]["t"]))
    return [{**event, "t": int(str(event["t"])) - since} for event in events]


ASIDE = """\
topology: {name: two-dc, parameters: {decode: 2}}
faults:
  - {kind: hold, link: md2, stop: 500 us, each: 2 ms, at: 1 s, duration: 8 s}
  - {kind: blackhole, link: md2, port: 9, at: 1 s, duration: 8 s}
"""


def test_a_link_beside_the_fault_does_not_change_by_a_nanosecond(
    testbed: Command, tmp_path: Path
) -> None:
    records = {}
    for name, text in (("with", ASIDE), ("without", ASIDE.partition("faults:")[0])):
        scenario = tmp_path / f"{name}.yaml"
        scenario.write_text(BASE + text)
        run = tmp_path / name
        done = testbed("run", str(scenario), "--out", str(run), "--json")
        assert done.status == 0, done
        records[name] = {agent: worked(run, agent) for agent in ("md1", "md2")}
    assert hits(tmp_path / "with")["hold-1"] > 0
    assert records["with"]["md1"] == records["without"]["md1"]
    assert records["with"]["md2"] != records["without"]["md2"]


RESET = """\
faults:
  - {kind: syn-loss, link: wan, share: 50 %, at: 1 s, duration: 8 s}
  - {kind: reset, node: p1, peer: md1, port: data, at: 1600 ms}
"""


def test_a_reset_ends_a_transfer_that_is_under_way(testbed: Command, tmp_path: Path) -> None:
    """Its request fails, or is tried again: what it may not do is hang, or pass for whole."""
    scenario, run = tmp_path / "reset.yaml", tmp_path / "run"
    scenario.write_text(BASE + RESET)
    testbed("run", str(scenario), "--out", str(run), "--json")
    findings = json.loads((run / "verdict.json").read_text(encoding="utf-8"))["findings"]
    kept = {one["check"]: one["status"] for one in findings}
    assert kept["faults-kept"] == kept["agents-stopped"] == "pass", findings
    assert hits(run)["reset-2"] > 0
    failed = [event for event in lab_events(run, "p1") if event["kind"] == "transfer.failed"]
    assert failed
