"""What users ask is answered: in words, at line rate, at ratio 1, however requests arrive."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.contract.plan import Plan
from testbed.contract.role import Role
from tests.lab.conftest import Command, Done

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("staging")]

DEFAULT_MAP_COUNT = 65_530
QUICK = ("shape.hardware=network-only", "window.drain=20 s")
REQUESTS = 8


def run(testbed: Command, folder: Path, scenario: str, *overrides: str) -> Done:
    """Runs a scenario and requires that it passes."""
    settings = [word for override in overrides for word in ("--set", override)]
    done = testbed("run", scenario, "--json", "--out", str(folder), *settings)
    assert done.status == 0, done.out + done.err
    verdict = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    assert verdict["verdict"] == "pass"
    return done


def outcomes(done: Done) -> dict[str, object]:
    """How the requests ended."""
    found = done.metrics["requests"]
    assert isinstance(found, dict)
    return found


def own_blocks(row: int) -> list[int]:
    """Blocks of 512 tokens behind the two that all rows of the trace share: one or two."""
    return [10 * row, 10 * row + 1][: 1 + row % 2]


def test_smollm2_answers_in_words_across_the_wan(testbed: Command, tmp_path: Path) -> None:
    allowed = int(Path("/proc/sys/vm/max_map_count").read_text(encoding="ascii"))
    if allowed != DEFAULT_MAP_COUNT:
        pytest.skip(f"vm.max_map_count is {allowed}: this shows nothing about the default")
    folder = tmp_path / "run"
    run(testbed, folder, "smollm2-answer")
    (line,) = (folder / "reference.jsonl").read_text(encoding="utf-8").splitlines()
    reference = json.loads(line)
    assert reference["text"].strip()
    done = [
        json.loads(event)
        for event in (folder / "events" / "c1.jsonl").read_text(encoding="utf-8").splitlines()
        if '"request.done"' in event
    ]
    assert [event["tokens"] for event in done] == [reference["tokens"]]


def test_a_gibibyte_crosses_400g_at_line_rate(testbed: Command, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    done = run(testbed, folder, "rdma-1gib")
    plan = Plan.model_validate_json((folder / "plan.json").read_bytes())
    request = json.loads((folder / "workload.jsonl").read_text(encoding="utf-8"))
    instances = {agent.node for agent in plan.agents if agent.role is not Role.CLIENT}
    rate_bps = min(
        link.forward.rate_bps
        for link in plan.network.links
        if {link.a.node, link.b.node} & instances
    )
    assert (request["wire_bytes"], rate_bps) == (2**30, 400 * 10**9)
    transfer = done.metrics["transfer"]
    assert isinstance(transfer, dict)
    ideal_s = request["wire_bytes"] * 8 / rate_bps
    assert ideal_s < transfer["p50_s"] <= 1.15 * ideal_s + 0.5e-3


def test_ratio_1_computes_and_moves_every_token(testbed: Command, tmp_path: Path) -> None:
    done = run(
        testbed, tmp_path / "run", "hello",
        "shape.ratio=1", "workload.input={kind: fixed, tokens: 512 tokens}", *QUICK,
    )  # fmt: skip
    assert outcomes(done)["completed"] == REQUESTS
    plan = Plan.model_validate_json((tmp_path / "run" / "plan.json").read_bytes())
    assert {agent.shape.ratio for agent in plan.agents} == {1}
    started = [
        json.loads(event)
        for event in (tmp_path / "run" / "events" / "p1.jsonl").read_text("utf-8").splitlines()
        if '"prefill.start"' in event
    ]
    assert all(event["real_tokens"] == event["uncached"] > 0 for event in started)


def test_a_closed_loop_waits_for_its_answers(testbed: Command, tmp_path: Path) -> None:
    done = run(
        testbed, tmp_path / "run", "hello",
        "workload.arrivals={kind: closed, users: 2, requests: 8}", *QUICK,
    )  # fmt: skip
    assert outcomes(done)["completed"] == REQUESTS
    open_now = most = 0
    for line in (tmp_path / "run" / "events" / "c1.jsonl").read_text("utf-8").splitlines():
        open_now += ('"request.sent"' in line) - ('"request.done"' in line)
        most = max(most, open_now)
    assert (open_now, most) == (0, 2)


def test_bursty_arrivals_are_served(testbed: Command, tmp_path: Path) -> None:
    done = run(
        testbed, tmp_path / "run", "hello",
        "workload.arrivals={kind: bursty, rate: 6 /s, burst: 300 ms, silence: 300 ms}",
        "expect.metrics.requests.completed='>= 2'", *QUICK,
    )  # fmt: skip
    assert outcomes(done)["failed"] == 0


def test_a_trace_gives_arrivals_lengths_and_hits(testbed: Command, tmp_path: Path) -> None:
    rows: list[dict[str, int | list[int]]] = [
        {
            "timestamp": 200 * row, "input_length": 1_536 + 512 * (row % 2),
            "output_length": 3 + row, "hash_ids": [1, 2, *own_blocks(row)],
        }
        for row in range(1, REQUESTS + 1)
    ]  # fmt: skip
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = run(
        testbed, tmp_path / "run", "hello",
        f"workload.arrivals={{kind: trace, file: '{trace}'}}",
        "workload.input={kind: trace, high: 4096 tokens}", "workload.hit={kind: trace}",
        "workload.output={kind: trace, high: 64 tokens}", *QUICK,
    )  # fmt: skip
    assert outcomes(done)["completed"] == REQUESTS
    lines = (tmp_path / "run" / "workload.jsonl").read_text(encoding="utf-8").splitlines()
    drawn = [json.loads(line) for line in lines]
    assert [one["output_tokens"] for one in drawn] == [row["output_length"] for row in rows]
    assert [one["hit_tokens"] for one in drawn] == [0] + [1_024] * (REQUESTS - 1)
