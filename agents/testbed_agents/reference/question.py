"""What the reference is asked: one model, one seed, and the requests of a run. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.contract.agent import ModelConfig, Request
from testbed_agents.model.prompt import Prompts


@dataclass(frozen=True, slots=True)
class Question:
    """Everything that the answers depend on, apart from code, weights and processor."""

    model: ModelConfig
    seed: int
    """Of the run: prompts follow from it."""
    ratio: int
    """Emulated tokens of a real one."""
    document_tokens: int
    """Emulated tokens of the shared document; 0 where prompts have spans."""
    requests: tuple[Request, ...]


def real_length(request: Request, ratio: int) -> int:
    """Real tokens of its prompt."""
    return request.input_tokens // ratio


def real_hit(request: Request, ratio: int) -> int:
    """Real tokens that it shares with the document; at most all."""
    return min(request.hit_tokens // ratio, real_length(request, ratio))


def real_spans(request: Request, ratio: int) -> tuple[tuple[int, int], ...]:
    """Its spans as (segment, real tokens)."""
    return tuple((span.segment, span.tokens // ratio) for span in request.prompt)


def prompt_of(prompts: Prompts, request: Request, ratio: int) -> tuple[int, ...]:
    """All real tokens of a request's prompt."""
    if request.prompt:
        return prompts.spans(real_spans(request, ratio))
    return prompts.prompt(request.id, real_hit(request, ratio), real_length(request, ratio))
