"""One uninterrupted engine: what every request's tokens must be, whatever the network did.

``python -m testbed_agents.reference RUN_FOLDER [--threads N] [--weights FILE]`` reads
plan.json and workload.jsonl and writes reference.jsonl, a line a request::

    {"req": 7, "tokens": [411, 9], "gaps": [0.83, 1.9]}

and ``"text"`` where the model has words. It runs in a process of its own, knows of no
transfer and no handoff, and takes each prompt in one pass up to its last token, where
a decode agent restores blocks and feeds the last token again. The plan names the
weights as agents see them, inside the guest; here they come from the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from testbed.contract.agent import AgentConfig, Request
from testbed.contract.plan import Plan
from testbed.errors import AnalysisError, TestbedError
from testbed_agents.model.engine import Engine, use_threads
from testbed_agents.model.kv import Kv
from testbed_agents.model.load import load_model, load_prompts
from testbed_agents.model.prompt import Prompts
from testbed_agents.model.protocol import Choice, Step

_BATCH = 32
"""Requests per pass; larger ones gain nothing, attention goes sequence by sequence."""


def answer(
    model: Engine, prompts: Prompts, agent: AgentConfig, requests: Sequence[Request]
) -> Iterator[tuple[Request, tuple[Choice, ...]]]:
    """The choices of every request, in the order given."""
    ratio = agent.shape.ratio
    document = model.prefill(prompts.base_document(agent.prompt_tokens // ratio))
    for begin in range(0, len(requests), _BATCH):
        group = requests[begin : begin + _BATCH]
        steps = [_first(model, prompts, document, request, ratio) for request in group]
        choices = [[choice] for choice in model.decode(steps)]
        for count in range(1, max(request.output_tokens for request in group)):
            live = [i for i, request in enumerate(group) if request.output_tokens > count]
            batch = [Step(steps[i].kv, (choices[i][-1].token,), group[i].id) for i in live]
            for i, choice in zip(live, model.decode(batch), strict=True):
                choices[i].append(choice)
        yield from zip(group, map(tuple, choices), strict=True)


def write_reference(run: Path, threads: int = 1, weights: Path | None = None) -> Path:
    """Write ``run``/reference.jsonl, all of it or nothing, and return its path.

    Raises:
        AnalysisError: plan.json or workload.jsonl is missing or malformed.
        AgentError: the weights are missing or damaged.
    """
    agent, requests = _read(run)
    config = agent.model.model_copy(update={"weights": str(weights) if weights else None})
    model = load_model(config)
    use_threads(threads)
    prompts = load_prompts(config, agent.seed)
    target = run / "reference.jsonl"
    partial = run / ".reference.jsonl.part"
    with partial.open("w") as stream:
        for request, choices in answer(model, prompts, agent, requests):
            line: dict[str, int | str | list[int] | list[float]] = {
                "req": request.id,
                "tokens": [choice.token for choice in choices],
                "gaps": [choice.gap for choice in choices],
            }
            words = prompts.text(tuple(choice.token for choice in choices))
            if words is not None:
                line["text"] = words
            stream.write(json.dumps(line, separators=(",", ":")) + "\n")
    os.replace(partial, target)
    return target


def _first(model: Engine, prompts: Prompts, document: Kv, request: Request, ratio: int) -> Step[Kv]:
    """All of the prompt behind the cached part, in one pass (at least its last token)."""
    length = request.input_tokens // ratio
    hit = min(request.hit_tokens // ratio, length)
    prompt = _tokens(prompts, request, hit, length, ratio)
    cached = 0 if request.prompt else min(hit, length - 1)  # spans have no base document
    return Step(document.prefix(cached), prompt[cached:], request.id)


def _tokens(
    prompts: Prompts, request: Request, hit: int, length: int, ratio: int
) -> tuple[int, ...]:
    if request.prompt:
        return prompts.spans(tuple((span.segment, span.tokens // ratio) for span in request.prompt))
    return prompts.prompt(request.id, hit, length)


def _read(run: Path) -> tuple[AgentConfig, tuple[Request, ...]]:
    """An agent's configuration that stands for all, and the workload."""
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
    return plan.agents[0], requests


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m testbed_agents.reference")
    parser.add_argument("run", type=Path, help="run folder")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads; default 1")
    parser.add_argument("--weights", type=Path, default=None, help="flat file; default: the cache")
    options = parser.parse_args(arguments)
    try:
        print(write_reference(options.run, options.threads, options.weights))
    except TestbedError as error:
        print(error, file=sys.stderr)
        return int(error.exit_status)
    return 0


if __name__ == "__main__":
    sys.exit(main())
