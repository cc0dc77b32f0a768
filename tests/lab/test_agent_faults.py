"""Faults that agents apply to pools, transfers and requests: seen, named, and replayed exactly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.conftest import Command

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("staging")]

POOLS = """\
extends: hello
name: hello-poor-pool
description: "A pool that shrinks, loses connections, and sends what nobody can use"
pool: {size: 4, transfer_timeout: 2 s}
expect: {metrics: {requests.completed: "== 6", requests.failed: "== 2"}}
faults:
  - {kind: drop-connection, pair: [p1, md1], connection: 3, how: reset, at: 200 ms}
  - {kind: drop-connection, pair: [p1, md1], connection: 2, how: clean, at: 250 ms}
  - {kind: shrink, pair: [p1, md1], lose: 3, at: 1600 ms, duration: 2 s}
  - {kind: stale, pair: [p1, md1], transfer: 1, at: 4 s, duration: 1 s}
  - {kind: skip-chunk, pair: [p1, md1], transfer: 1, at: 5 s}
"""

WAITING = """\
extends: pdd-hello
name: pdd-waiting
description: "Faults that wait for the progress of a transfer"
expect: {metrics: {requests.completed: "== 15", requests.failed: "== 1"}}
faults:
  - {kind: slow, node: p1, factor: 2.0, duration: 1 s,
     when: {pair: [p1, md1], transfer: 1, progress: 40 %}}
  - {kind: leave, node: c1, how: clean, when: {pair: [p1, md1], transfer: 2, progress: 40 %}}
  - {kind: down, link: wan1, duration: 200 ms,
     when: {pair: [p2, md1], transfer: 1, progress: 50 %}}
"""


def record(run: Path) -> list[dict[str, object]]:
    lines = [
        json.loads(line)
        for path in sorted((run / "events").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return sorted(lines, key=lambda line: int(line["t"]))


def reasons(run: Path, kind: str) -> list[str]:
    return [str(line["reason"]) for line in record(run) if line["kind"] == kind]


def finding(run: Path) -> str:
    found = json.loads((run / "verdict.json").read_text(encoding="utf-8"))["findings"]
    (one,) = (one for one in found if one["check"] == "faults-kept")
    assert one["status"] == "pass", one
    return str(one["evidence"])


def test_a_pool_under_faults_fails_what_it_must_by_name_and_replays(
    testbed: Command, tmp_path: Path
) -> None:
    scenario = tmp_path / "pools.yaml"
    scenario.write_text(POOLS)
    digests = []
    for name in ("first", "again"):
        run = tmp_path / name
        done = testbed("run", str(scenario), "--out", str(run), "--json")
        assert done.status == 0, done
        digests.append(done.metrics["timeline_sha256"])
        assert finding(run).startswith("5 of 5 times")
        assert "bad-digest" in reasons(run, "kv.refused")[0]
        assert [reason.partition(":")[0] for reason in reasons(run, "request.failed")] == [
            "refused", "timeout",
        ]  # fmt: skip
    assert digests[0] == digests[1]


def test_faults_that_wait_begin_where_they_should(testbed: Command, tmp_path: Path) -> None:
    scenario, run = tmp_path / "waiting.yaml", tmp_path / "run"
    scenario.write_text(WAITING)
    done = testbed("run", str(scenario), "--out", str(run), "--json")
    assert done.status == 0, done
    assert finding(run).startswith("3 of 3 times")
    lines = record(run)
    for number, of in ((1, "slow-1"), (2, "leave-2")):
        starts = [
            line
            for line in lines
            if line["kind"] == "transfer.start" and (line["node"], line["peer"]) == ("p1", "md1")
        ]
        (seen,) = (x for x in lines if x["kind"] == "fault.reached" and x["fault"] == of)
        assert seen["req"] == starts[number - 1]["req"]
    assert reasons(run, "request.failed") == ["client-left"]
