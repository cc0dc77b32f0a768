"""A scenario's ``prompts`` become spans of requests, and hits follow from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from testbed.contract.agent import Request, Shape, Window
from testbed.errors import PlanError
from testbed.scenario.workload import Workload
from testbed.workload import draw, load_trace
from testbed.workload.prefix import expected_hits, whole_documents
from testbed.workload.traces import Trace

pytestmark = pytest.mark.unit

Part = dict[str, str | int | float]
SHAPE = Shape(block_tokens=128, ratio=128, bytes_per_token=10, fixed_bytes=5)
WINDOW = Window(warm_up_ns=0, measure_ns=20_000_000_000, drain_ns=1)
POISSON: Part = {"kind": "poisson", "rate": "20 /s"}
UNIFORM: Part = {"kind": "uniform", "low": "85 %", "high": "95 %"}
SESSIONS: Part = {
    "kind": "sessions", "sessions": 8, "turns": 6.0, "system": "2048 tokens",
    "high": "65536 tokens",
}  # fmt: skip


def workload(
    prompts: Part | None, hit: Part = UNIFORM, arrivals: Part = POISSON, prompt: Part | None = None
) -> Workload:
    parts: dict[str, Part] = {
        "arrivals": arrivals,
        "input": prompt or {"kind": "fixed", "tokens": "12800 tokens"},
        "hit": hit,
        "output": {"kind": "fixed", "tokens": "300 tokens"},
    }
    return Workload.model_validate(parts | ({} if prompts is None else {"prompts": prompts}))


def drawn(asked: Workload, trace: Trace | None = None, seed: int = 1) -> tuple[Request, ...]:
    return draw(asked, SHAPE, ["p1"], ["md1"], WINDOW, seed, 1e9, 1, trace)[0]


def check_sizes(requests: tuple[Request, ...]) -> None:
    for request in requests:
        assert request.blocks * 128 == request.input_tokens - request.hit_tokens
        assert request.wire_bytes == 5 + 10 * 128 * request.blocks
        assert sum(span.tokens for span in request.prompt) == request.input_tokens


def test_one_document_is_the_default_and_needs_no_spans() -> None:
    plain = drawn(workload(None))
    assert {request.prompt for request in plain} == {()}
    assert drawn(workload({"kind": "documents", "count": 1})) == plain


def test_several_documents_keep_arrivals_and_hits() -> None:
    plain, shared = drawn(workload(None)), drawn(workload({"kind": "documents", "count": 4}))
    check_sizes(shared)
    assert [request.model_copy(update={"prompt": ()}) for request in shared] == list(plain)
    hits = expected_hits([r.prompt for r in shared], 128, whole_documents(4, 12_800))
    assert [hit * 128 for hit in hits] == [request.hit_tokens for request in shared]


def test_a_fully_cached_prompt_keeps_one_block_of_its_own() -> None:
    full: Part = {"kind": "fixed", "share": "100 %"}
    requests = drawn(workload({"kind": "documents", "count": 2}, full))
    assert {request.blocks for request in requests} == {1}


def test_sessions_bring_their_own_lengths_and_hits() -> None:
    asked = workload(
        SESSIONS, {"kind": "prompts"}, prompt={"kind": "fixed", "tokens": "256 tokens"}
    )
    requests = drawn(asked)
    check_sizes(requests)
    assert asked.longest_input == 65_536
    assert {request.prompt[0].tokens for request in requests} == {2048}
    # A later turn adds an answer of 300 tokens in whole blocks (384) and 256 new ones.
    assert {request.input_tokens - request.hit_tokens for request in requests[8:]} <= {256, 640}
    assert drawn(asked) == requests
    assert drawn(asked, seed=2) != requests


def test_a_trace_s_prompts_are_cut_into_our_blocks(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    rows = (
        {"timestamp": 0, "input_length": 1200, "output_length": 7, "hash_ids": [1, 2, 3]},
        {"timestamp": 9, "input_length": 1100, "output_length": 7, "hash_ids": [1, 2, 4]},
        {"timestamp": 9, "input_length": 600, "output_length": 7, "hash_ids": [1, 5]},
    )
    path.write_text("\n".join(json.dumps(row) for row in rows))
    arrivals: Part = {"kind": "trace", "file": "trace.jsonl"}
    asked = workload(
        {"kind": "trace"}, {"kind": "prompts"}, arrivals, {"kind": "trace", "high": "1152 tokens"}
    )
    requests = drawn(asked, load_trace(path))
    check_sizes(requests)
    assert [request.input_tokens for request in requests] == [1152, 1024, 512]
    assert [request.hit_tokens for request in requests] == [0, 1024, 512]


def test_hits_cannot_come_from_a_trace_without_block_ids(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n")
    arrivals: Part = {"kind": "trace", "file": "trace.csv", "format": "azure"}
    length: Part = {"kind": "trace", "high": "1152 tokens"}
    trace = load_trace(path, None, "azure")
    with pytest.raises(PlanError, match="no block ids"):
        drawn(workload(None, {"kind": "trace"}, arrivals, length), trace)
    with pytest.raises(PlanError, match="no block ids"):
        drawn(workload({"kind": "trace"}, {"kind": "prompts"}, arrivals, length), trace)
    assert drawn(workload(None, UNIFORM, arrivals, length), trace)[0].input_tokens == 256


@pytest.mark.parametrize(
    ("prompts", "hit", "reason"),
    [
        (SESSIONS, UNIFORM, "need hits of kind prompts"),
        (None, {"kind": "prompts"}, "another kind than prompts"),
        ({"kind": "trace"}, {"kind": "prompts"}, "prompts has kind trace"),
        ({"kind": "documents", "count": 0}, UNIFORM, "greater than or equal to 1"),
    ],
)
def test_parts_that_do_not_go_together_are_refused(
    prompts: Part | None, hit: Part, reason: str
) -> None:
    with pytest.raises(ValidationError, match=reason):
        workload(prompts, hit)
