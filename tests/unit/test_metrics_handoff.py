"""Handoffs by hand: who began an answer, who ended it, and the gap that the client saw."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.contract.event import Kind, Value
from testbed.contract.plan import Plan
from testbed.contract.serving import FirstToken
from testbed.metrics import compute
from testbed.oracle import read_outcomes
from tests.fakes.hand_run import Told, figure
from tests.fakes.serving_run import FIXED_BYTES, SIZE, sent, serving_story, write_serving_run


def handoff(metrics: object) -> dict[str, object]:
    found = figure(metrics, "handoff")
    assert isinstance(found, dict)
    return found


def changed(events: list[Told], kind: Kind, req: int, **fields: Value) -> list[Told]:
    return [
        replace(one, fields={**one.fields, **fields})
        if (one.kind, one.fields.get("req")) == (kind, req) else one
        for one in events
    ]  # fmt: skip


def prefilled(run: Path) -> Path:
    """P emits position 0."""
    path = run / "plan.json"
    plan = Plan.model_validate_json(path.read_bytes())
    agents = []
    for agent in plan.agents:
        assert agent.serving is not None
        serving = agent.serving.model_copy(update={"first_token": FirstToken.PREFILL})
        agents.append(agent.model_copy(update={"serving": serving}))
    path.write_text(plan.model_copy(update={"agents": tuple(agents)}).model_dump_json())
    return run


def test_the_gap_of_a_handoff_is_the_clients(tmp_path: Path) -> None:
    found = handoff(compute(write_serving_run(tmp_path / "run", serving_story())))
    assert (found["count"], found["empty"], found["ended_at_rld"]) == (1, 0, 0)
    assert found["p50_s"] == pytest.approx(0.1)  # 2.000 to 2.100 at MD
    assert found["gap_p50_s"] == pytest.approx(0.11)  # 2.000 to 2.110 at the client
    assert found["gap_max_s"] == pytest.approx(0.11)


def test_what_md_takes_over_before_rld_began_is_no_handoff(tmp_path: Path) -> None:
    events = changed(serving_story(), Kind.HANDOFF_END, 1, position=0)
    events = changed(events, Kind.RELAY_END, 1, tokens=0, ids=0)
    metrics = compute(write_serving_run(tmp_path / "run", events))
    found = handoff(metrics)
    assert (found["count"], found["empty"], found["p50_s"]) == (0, 1, None)
    assert figure(metrics, "serving.handoffs_by_mode") == {}


def test_an_answer_that_rld_completes_ended_there(tmp_path: Path) -> None:
    events = [
        event for event in serving_story()
        if event.kind is not Kind.HANDOFF_END and event.fields.get("source") != "md1"
    ]  # fmt: skip
    found = handoff(compute(write_serving_run(tmp_path / "run", events)))
    assert (found["count"], found["empty"], found["ended_at_rld"]) == (0, 0, 1)
    failed = [
        replace(event, kind=Kind.REQUEST_FAILED, fields={"req": 1, "reason": "deadline"})
        if (event.kind, event.fields.get("req")) == (Kind.REQUEST_DONE, 1) else event
        for event in events
    ]  # fmt: skip
    assert handoff(compute(write_serving_run(tmp_path / "cut", failed)))["ended_at_rld"] == 0


def test_position_0_is_none_of_rlds_where_p_emits_it(tmp_path: Path) -> None:
    run = prefilled(write_serving_run(tmp_path / "run", serving_story()))
    metrics = compute(run)
    assert figure(metrics, "rld.output_tokens_mean") == 31.0  # 32 positions, the first of P
    assert handoff(metrics)["eager_tokens_mean"] == 28.0  # of 29 heard
    assert handoff(metrics)["catchup_tokens_mean"] == 1.0
    events = changed(serving_story(), Kind.HANDOFF_END, 1, position=1)
    events = changed(events, Kind.HANDOFF_START, 1, heard=1)
    for tokens in (0, 1):  # never begun; begun and stopped before its first own token
        ended = changed(events, Kind.RELAY_END, 1, tokens=tokens, ids=0)
        ended = [event for event in ended if event.fields.get("source") != "r1"]
        run = prefilled(write_serving_run(tmp_path / f"none-{tokens}", ended))
        metrics = compute(run)
        assert figure(metrics, "rld.output_tokens_mean") == 0.0
        assert figure(metrics, "rld.token_share") == 0.0
        assert (handoff(metrics)["count"], handoff(metrics)["empty"]) == (0, 1)
        assert handoff(metrics)["eager_tokens_mean"] is None


def test_increments_are_a_kind_of_their_own_and_no_transfer_of_a_prompt(tmp_path: Path) -> None:
    size = 32 * 5_031 + FIXED_BYTES
    increment = [
        replace(one, node="r1") if one.node == "p1" else one
        for one in sent(1, "md1", size, 2_050, 2_060, 2_090)
    ]
    plain = compute(write_serving_run(tmp_path / "plain", serving_story()))
    run = write_serving_run(tmp_path / "run", [*serving_story(), *increment])
    metrics = compute(run)
    sizes = figure(metrics, "transfer.bytes_by_kind")
    assert sizes == {"kv": SIZE, "kv-relay": 999, "kv-increment": size}
    for part in ("transfer.bytes", "transfer.p50_s", "transfer.p99_s", "pool", "serving.stages"):
        assert figure(metrics, part) == figure(plain, part)
    assert [outcome.size_bytes for outcome in read_outcomes(run / "oracle.jsonl")] == [SIZE]


def test_a_pipeline_without_md_leaves_nothing_ended_at_rld(tmp_path: Path) -> None:
    events = changed(serving_story(), Kind.REQUEST_ROUTED, 1, decode="", pipeline="P-RLD")
    events = [event for event in events if event.kind is not Kind.HANDOFF_END]
    found = handoff(compute(write_serving_run(tmp_path / "run", events)))
    assert (found["count"], found["ended_at_rld"]) == (0, 0)
