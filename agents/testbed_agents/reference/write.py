"""From a run folder's plan and workload to its reference.jsonl."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pydantic import ValidationError

from testbed.contract.agent import Request
from testbed.contract.plan import Plan
from testbed.errors import AnalysisError
from testbed_agents.reference.kept import keep, key_of, recall
from testbed_agents.reference.question import Question
from testbed_agents.reference.share import answer_lines, cores


def write_reference(
    run: Path, processes: int | None = None, weights: Path | None = None, anew: bool = False
) -> Path:
    """Write ``run``/reference.jsonl, all of it or nothing, and return its path.

    Args:
        processes: engines at once; None takes one for each core that may be used.
        weights: flat file of the model; None takes the cache's.
        anew: compute, although the same was asked before.

    Raises:
        AnalysisError: plan.json or workload.jsonl is missing or malformed.
        AgentError: the weights are missing or damaged.
    """
    question = _read(run, weights)
    key = key_of(question, weights)
    content = None if anew else recall(key)
    if content is None:
        with tempfile.TemporaryDirectory(prefix="testbed-reference-") as scratch:
            lines = answer_lines(question, processes or cores(), Path(scratch))
        content = "".join(f"{lines[request.id]}\n" for request in question.requests)
        keep(key, content)
    target = run / "reference.jsonl"
    partial = run / ".reference.jsonl.part"
    partial.write_text(content, encoding="utf-8")
    os.replace(partial, target)
    return target


def _read(run: Path, weights: Path | None) -> Question:
    """The part of an agent's configuration that all share, and the workload."""
    try:
        plan = Plan.model_validate_json((run / "plan.json").read_bytes())
        lines = (run / "workload.jsonl").read_text().splitlines()
        requests = tuple(Request.model_validate_json(line) for line in lines)
    except (OSError, ValidationError) as error:
        raise AnalysisError("recompute tokens", str(run), str(error)) from error
    if not plan.agents:
        raise AnalysisError("recompute tokens", str(run), "the plan has no agents")
    kinds = {(agent.seed, agent.model, agent.shape, agent.prompt_tokens) for agent in plan.agents}
    if len(kinds) != 1:
        raise AnalysisError(
            "recompute tokens", str(run), "agents differ in seed, model, shape or prompt_tokens"
        )
    agent = plan.agents[0]
    model = agent.model.model_copy(update={"weights": str(weights) if weights else None})
    return Question(model, agent.seed, agent.shape.ratio, agent.prompt_tokens, requests)
