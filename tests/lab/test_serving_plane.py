"""The serving plane in the lab: every pipeline and handoff answers like one engine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.conftest import Command, Done, environment

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("staging")]

DIRECT = ("--set", "serving.pipeline={kind: direct}")
ONE_SHOT = ("--set", "serving.handoff.mode=one-shot")


def figures(done: Done, *path: str) -> object:
    assert done.status == 0, done.out + done.err
    value: object = done.metrics
    for name in path:
        assert isinstance(value, dict)
        value = value[name]
    return value


@pytest.fixture(scope="module")
def caught_up(tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder = tmp_path_factory.mktemp("caught-up")
    done = subprocess.run(
        [sys.executable, "-m", "testbed", "run", "pdd-hello", "--json"],
        cwd=folder, env=environment(), capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def test_answers_pass_from_relay_to_main_without_a_stall(caught_up: Done) -> None:
    count = figures(caught_up, "handoff", "count")
    assert isinstance(count, int)
    assert count > 0
    assert figures(caught_up, "stall", "count") == 0


def test_both_ends_of_the_line_hit_alike(caught_up: Done) -> None:
    hit = figures(caught_up, "cache", "p_hit")
    assert isinstance(hit, float)
    assert hit > 0.3
    assert figures(caught_up, "cache", "md_hit") == hit


def test_only_what_the_decode_side_lacks_crosses_the_line(caught_up: Done) -> None:
    sizes = figures(caught_up, "transfer", "bytes_by_kind")
    assert isinstance(sizes, dict)
    hit = figures(caught_up, "cache", "md_hit")
    assert isinstance(hit, float)
    whole = 16 * 4096 * 5031
    assert sizes["kv"] == pytest.approx((1 - hit) * whole, rel=0.01)


def test_a_second_run_has_the_same_timeline(testbed: Command, caught_up: Done) -> None:
    again = testbed("run", "pdd-hello", "--json")
    assert figures(again, "timeline_sha256") == figures(caught_up, "timeline_sha256")


def test_one_shot_costs_the_relay_less(testbed: Command, caught_up: Done) -> None:
    share = figures(testbed("run", "pdd-hello", "--json", *ONE_SHOT), "rld", "token_share")
    more = figures(caught_up, "rld", "token_share")
    assert isinstance(share, float)
    assert isinstance(more, float)
    assert 0 < share < more


def test_without_relay_the_first_token_waits_for_the_line(
    testbed: Command, caught_up: Done
) -> None:
    direct = testbed("run", "pdd-hello", "--json", *DIRECT)
    assert figures(direct, "rld", "token_share") == 0
    late, early = figures(direct, "ttft", "p50_s"), figures(caught_up, "ttft", "p50_s")
    assert isinstance(late, float)
    assert isinstance(early, float)
    assert late > early


SCARCE = ("--set", "serving.memory={relay: 62100 kB, decode: 62100 kB, headroom: 4 tokens}")
PREFILLED = ("--set", "serving.first_token=prefill")
RELAY_CACHE = ("--set", "serving.caches.relay=256 GiB")


def test_where_memory_runs_out_the_answers_stay_those_of_one_engine(testbed: Command) -> None:
    scarce = testbed("run", "pdd-hello", "--json", *SCARCE)
    preemptions = figures(scarce, "serving", "preemptions")
    assert isinstance(preemptions, int)
    assert preemptions > 0
    lost = figures(scarce, "serving", "preempted")
    assert isinstance(lost, dict)
    assert "r1" in lost


def test_the_first_token_of_p_comes_before_any_transfer(testbed: Command, caught_up: Done) -> None:
    prefilled = testbed("run", "pdd-hello", "--json", *PREFILLED, *RELAY_CACHE)
    early, late = figures(prefilled, "ttft", "p50_s"), figures(caught_up, "ttft", "p50_s")
    assert isinstance(early, float)
    assert isinstance(late, float)
    assert early < late
    sizes = figures(prefilled, "transfer", "bytes_by_kind")
    whole = figures(caught_up, "transfer", "bytes_by_kind")
    assert isinstance(sizes, dict)
    assert isinstance(whole, dict)
    assert sizes["kv-relay"] < 0.8 * whole["kv-relay"]


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_token_that_ends_an_answer_ends_it_wherever_it_is_made(
    testbed: Command, tmp_path: Path
) -> None:
    ends = ("--set", f"model.stop={list(range(24))}")
    stopped = testbed("run", "pdd-hello", "--out", "run", "--json", *ends)
    assert figures(stopped, "requests", "completed") == 16
    run = tmp_path / "run"
    events = {path.stem: lines(path) for path in (run / "events").glob("*.jsonl")}
    wanted = {one["id"]: one["output_tokens"] for one in lines(run / "workload.jsonl")}
    answers: dict[object, list[int]] = {}
    for event in events["c1"]:
        if event["kind"] == "request.done":
            tokens = event["tokens"]
            assert isinstance(tokens, list)
            answers[event["req"]] = tokens
    early = {req for req, tokens in answers.items() if len(tokens) != wanted[req]}
    assert len(early) > 4
    assert all(answers[req][-1] < 24 for req in early)
    assert all(token >= 24 for tokens in answers.values() for token in tokens[:-1])
    by_relay = {e["req"] for e in events["r1"] if e.get("cause") == "last"}
    assert by_relay & early
    mains = (*events["md1"], *events["md2"])
    assert by_relay <= {e["req"] for e in mains if e["kind"] == "cache.published"}


def test_a_token_id_costs_a_few_bytes_on_the_line(caught_up: Done) -> None:
    told = figures(caught_up, "serving", "token_ids")
    assert isinstance(told, dict)
    assert told["requests"] > 0
    assert 8 < told["bytes_per_token"] < 24
    sizes = figures(caught_up, "transfer", "bytes_by_kind")
    assert isinstance(sizes, dict)
    assert sizes["token-ids"] == told["bytes"]
