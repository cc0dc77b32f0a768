"""Figures of preemption and of the ids that RLD tells MD, against a calculation by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from testbed.contract.event import Kind
from testbed.metrics import compute
from tests.fakes.hand_run import figure, told
from tests.fakes.serving_run import SIZE, serving_story, write_serving_run


def test_preemptions_are_counted_by_instance_and_without_the_warm_up(tmp_path: Path) -> None:
    lost = [
        told(ms, node, Kind.SEQUENCE_PREEMPTED, req=req, tokens=tokens, held=1, waiting=1)
        for ms, node, req, tokens in (
            (500, "md1", 0, 9), (1_700, "r1", 1, 4), (1_800, "r1", 1, 6), (2_200, "md1", 1, 7),
            (2_300, "md1", 2, 1),
        )
    ]  # fmt: skip
    metrics = compute(write_serving_run(tmp_path / "run", [*serving_story(), *lost]))
    assert figure(metrics, "serving.preemptions") == 4
    assert figure(metrics, "serving.preempted") == {
        "md1": {"preemptions": 2, "requests": 2, "recomputed_tokens": 8},
        "r1": {"preemptions": 2, "requests": 1, "recomputed_tokens": 10},
    }


def test_token_ids_are_a_kind_of_their_own_on_the_line(tmp_path: Path) -> None:
    story = [
        replace(event, size=13 * int(str(event.fields["ids"])))
        if event.kind is Kind.RELAY_END else event
        for event in serving_story()
    ]  # fmt: skip
    metrics = compute(write_serving_run(tmp_path / "run", story))
    told_ids = figure(metrics, "serving.token_ids")
    assert isinstance(told_ids, dict)
    assert (told_ids["requests"], told_ids["tokens"], told_ids["bytes"]) == (1, 32, 416)
    assert told_ids["bytes_per_token"] == 13.0
    assert told_ids["request_p99_bytes"] == 416.0
    sizes = figure(metrics, "transfer.bytes_by_kind")
    assert sizes == {"kv": SIZE, "kv-relay": 999, "token-ids": 416}
    assert figure(metrics, "transfer.bytes") == SIZE
