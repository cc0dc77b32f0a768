"""One engine answers requests: prompt in one pass, then step by step, in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from testbed.contract.agent import Request
from testbed_agents.model.engine import Engine
from testbed_agents.model.kv import Kv
from testbed_agents.model.prompt import Prompts
from testbed_agents.model.protocol import Choice, Step
from testbed_agents.reference.question import (
    Question,
    prompt_of,
    real_hit,
    real_length,
    real_spans,
)

BATCH = 16
"""Requests of a pass. More share the linear layers among more tokens, fewer keep their KV
in the processor's cache; between 8 and 32 it hardly matters."""
_STARTS_MAX = 16
"""Beginnings of prompts whose rows are held at once."""


class Answerer:
    """Answers requests of one question with one engine."""

    def __init__(self, model: Engine, prompts: Prompts, question: Question) -> None:
        self._model = model
        self._prompts = prompts
        self._ratio = question.ratio
        self._stop = frozenset(question.model.stop)
        self._document = model.prefill(
            prompts.base_document(question.document_tokens // question.ratio)
        )
        self._shared = _shared_starts(question)
        self._starts: dict[int, Kv] = {}

    def answer(self, group: Sequence[Request]) -> Iterator[tuple[Request, tuple[Choice, ...]]]:
        """The choices of every request of one batch, in the order given."""
        steps = [self._first(request) for request in group]
        choices = [[choice] for choice in self._model.decode(steps)]
        for count in range(1, max(request.output_tokens for request in group)):
            live = [
                i
                for i, request in enumerate(group)
                if request.output_tokens > count and choices[i][-1].token not in self._stop
            ]
            if not live:
                break
            batch = [Step(steps[i].kv, (choices[i][-1].token,), group[i].id) for i in live]
            for i, choice in zip(live, self._model.decode(batch), strict=True):
                choices[i].append(choice)
        yield from zip(group, map(tuple, choices), strict=True)

    def _first(self, request: Request) -> Step[Kv]:
        """All of the prompt behind what was computed before, in one pass (at least one token)."""
        tokens = prompt_of(self._prompts, request, self._ratio)
        last = real_length(request, self._ratio) - 1
        if request.prompt:
            segment, length = real_spans(request, self._ratio)[0]
            begun = min(length, last) if segment in self._shared else 0
            past = self._start(segment).prefix(begun) if begun else Kv(self._model.layout)
        else:
            begun = min(real_hit(request, self._ratio), last)
            past = self._document.prefix(begun)
        return Step(past, tokens[begun:], request.id)

    def _start(self, segment: int) -> Kv:
        """Rows of a segment that several prompts begin with, as far as the longest goes."""
        found = self._starts.pop(segment, None)
        if found is None:
            span = (segment, self._shared[segment])
            found = self._model.prefill(self._prompts.spans((span,)))
        self._starts[segment] = found
        while len(self._starts) > _STARTS_MAX:
            del self._starts[next(iter(self._starts))]
        return found


def groups(requests: Sequence[Request]) -> list[tuple[Request, ...]]:
    """Batches of answers of like length, the longest first: none waits for another's end."""
    order = sorted(requests, key=lambda request: -request.output_tokens)
    return [tuple(order[begin : begin + BATCH]) for begin in range(0, len(order), BATCH)]


def _shared_starts(question: Question) -> dict[int, int]:
    """Segments that more than one prompt begins with, and the most real tokens of each."""
    lengths: dict[int, list[int]] = {}
    for request in question.requests:
        if request.prompt:
            segment, length = real_spans(request, question.ratio)[0]
            lengths.setdefault(segment, []).append(length)
    return {segment: max(found) for segment, found in lengths.items() if len(found) > 1}
