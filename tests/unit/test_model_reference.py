"""The reference: one engine's tokens for every request of a run folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from testbed.contract.agent import ModelConfig, Request
from testbed.errors import AgentError, AnalysisError
from testbed_agents.model.load import load_model, load_prompts
from testbed_agents.model.protocol import Step
from testbed_agents.reference import write_reference
from testbed_agents.reference.__main__ import main
from testbed_agents.reference.question import Question
from testbed_agents.reference.share import answer_lines
from tests.fakes.fake_run import FakeRun
from tests.fakes.pool_plan import make_plan

RATIO, BLOCK = 128, 128


def request(number: int, hit_blocks: int, output_tokens: int) -> Request:
    return Request(
        id=number,
        at_ns=0,
        input_tokens=64 * BLOCK,
        hit_tokens=hit_blocks * BLOCK,
        output_tokens=output_tokens,
        blocks=64 - hit_blocks,
        wire_bytes=1,
        prefill="p1",
        decode="md1",
    )


REQUESTS = tuple(request(i, (17 * i) % 65, 1 + i % 4) for i in range(70))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plan = make_plan(FakeRun(seed=11), REQUESTS)
    (tmp_path / "plan.json").write_text(plan.model_dump_json())
    lines = "".join(one.model_dump_json() + "\n" for one in REQUESTS)
    (tmp_path / "workload.jsonl").write_text(lines)
    return tmp_path


def test_tokens_are_those_of_a_decode_agent(folder: Path) -> None:
    """The agent's way: full prompt but one, feed the last token, then step by step."""
    lines = [json.loads(line) for line in write_reference(folder).read_text().splitlines()]
    config = ModelConfig(name="nano", seed=11)
    model, prompts = load_model(config), load_prompts(config, 11)
    assert [line["req"] for line in lines] == [one.id for one in REQUESTS]
    for one, line in zip(REQUESTS, lines, strict=True):
        tokens = prompts.prompt(one.id, one.hit_tokens // RATIO, one.input_tokens // RATIO)
        kv, last = model.prefill(tokens[:-1]), tokens[-1]
        expected: list[int] = []
        for _ in range(one.output_tokens):
            last = model.decode([Step(kv, (last,), one.id)])[0].token
            expected.append(last)
        assert line["tokens"] == expected
        assert len(line["gaps"]) == one.output_tokens
        assert min(line["gaps"]) > 1e-9


def test_a_second_run_writes_the_same_bytes(folder: Path) -> None:
    first = write_reference(folder).read_bytes()
    assert write_reference(folder, anew=True).read_bytes() == first


def test_one_process_and_three_write_the_same_tokens(folder: Path) -> None:
    def tokens() -> list[object]:
        return [json.loads(line)["tokens"] for line in lines.read_text().splitlines()]

    lines = write_reference(folder, processes=1)
    alone = tokens()
    write_reference(folder, processes=3, anew=True)
    assert tokens() == alone


def test_the_same_question_is_computed_once(folder: Path) -> None:
    """A kept reference is taken as it is, unless it is damaged or the question differs."""
    first = write_reference(folder).read_bytes()
    (kept,) = (folder / "cache/pdd-testbed/references").iterdir()
    changed = first.replace(b'"req":0', b'"req":9', 1)
    kept.write_bytes(hashlib.sha256(changed).hexdigest().encode() + b"\n" + changed)
    assert write_reference(folder).read_bytes() == changed
    kept.write_bytes(b"0" * 64 + b"\n" + changed)
    assert write_reference(folder).read_bytes() == first
    workload = folder / "workload.jsonl"
    workload.write_text(workload.read_text().replace('"output_tokens":4', '"output_tokens":5'))
    assert write_reference(folder).read_bytes() != first


def test_a_process_that_breaks_is_an_error(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The second share holds a request whose segments are no prompt of the model's."""
    question = Question(
        ModelConfig(name="nano", seed=11), 11, RATIO, 64 * BLOCK,
        (*REQUESTS[:16], REQUESTS[16].model_copy(update={"input_tokens": 0, "output_tokens": 1})),
    )  # fmt: skip
    with pytest.raises(AgentError, match="ended with status 1"):
        answer_lines(question, 2, folder)
    assert "at least one token" in capfd.readouterr().err


def test_agents_that_differ_are_refused(folder: Path) -> None:
    plan = json.loads((folder / "plan.json").read_text())
    plan["agents"][0]["seed"] += 1
    (folder / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(AnalysisError, match="agents differ in seed"):
        write_reference(folder)


def test_a_folder_without_a_plan_is_an_error_with_a_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == AnalysisError.exit_status
    assert "plan.json" in capsys.readouterr().err


def test_missing_weights_leave_no_half_file(folder: Path) -> None:
    plan = json.loads((folder / "plan.json").read_text())
    for agent in plan["agents"]:
        agent["model"]["name"] = "smollm2-135m"
    (folder / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(AgentError, match=r"model\.convert"):
        write_reference(folder, weights=folder / "absent.flat")
    assert not list(folder.glob("*reference*"))
