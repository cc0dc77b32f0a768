"""Shares of one question for several processes: each answers whole requests with one engine.

Processes are forked once the model is loaded, so that they share it. Each writes the
lines of its share into a file of its own; they end with the process that began them.
"""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import signal
import traceback
from collections.abc import Sequence
from pathlib import Path

from testbed.contract.agent import Request
from testbed.errors import AgentError
from testbed_agents.model.load import load_model, load_prompts
from testbed_agents.model.prompt import Prompts
from testbed_agents.model.protocol import Choice
from testbed_agents.reference.answer import Answerer, groups
from testbed_agents.reference.question import Question

_PR_SET_PDEATHSIG = 1


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def answer_lines(question: Question, processes: int, scratch: Path) -> dict[int, str]:
    """A line of JSON for every request, by its id.

    Args:
        scratch: a folder for the shares.

    Raises:
        AgentError: the weights are missing or damaged, or a process broke.
    """
    answerer = Answerer(
        load_model(question.model), load_prompts(question.model, question.seed), question
    )
    prompts = load_prompts(question.model, question.seed)
    work = groups(question.requests)
    count = max(1, min(processes, len(work)))
    shares = [work[index::count] for index in range(count)]
    context = multiprocessing.get_context("fork")
    parts = [scratch / f"share{index}" for index in range(count)]
    others = [
        context.Process(target=_child, args=(answerer, prompts, share, part), daemon=True)
        for share, part in zip(shares[1:], parts[1:], strict=True)
    ]
    for other in others:
        other.start()
    _write(answerer, prompts, shares[0], parts[0])
    for other in others:
        other.join()
        if other.exitcode != 0:
            raise AgentError(
                "compute the reference answers", f"process {other.name}",
                f"it ended with status {other.exitcode}", "see the error output above",
            )  # fmt: skip
    lines: dict[int, str] = {}
    for part in parts:
        for line in part.read_text(encoding="utf-8").splitlines():
            number, _, text = line.partition(" ")
            lines[int(number)] = text
    return lines


def _child(
    answerer: Answerer, prompts: Prompts, share: Sequence[Sequence[Request]], part: Path
) -> None:
    """One process: ends with the first one, whatever ends that."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    try:
        _write(answerer, prompts, share, part)
    except BaseException:
        traceback.print_exc()
        raise


def _write(
    answerer: Answerer, prompts: Prompts, share: Sequence[Sequence[Request]], part: Path
) -> None:
    with part.open("w", encoding="utf-8") as stream:
        for group in share:
            for request, choices in answerer.answer(group):
                stream.write(f"{request.id} {_line(prompts, request, choices)}\n")


def _line(prompts: Prompts, request: Request, choices: Sequence[Choice]) -> str:
    tokens = [choice.token for choice in choices]
    line: dict[str, int | str | list[int] | list[float]] = {
        "req": request.id,
        "tokens": tokens,
        "gaps": [choice.gap for choice in choices],
    }
    words = prompts.text(tuple(tokens))
    if words is not None:
        line["text"] = words
    return json.dumps(line, separators=(",", ":"))
