"""One request's prompt: its spans, its block keys, its real tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from testbed.contract.agent import Shape, Span
from testbed.contract.block_key import block_keys
from testbed.errors import ProtocolError
from testbed_agents.model.prompt import Prompts


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt in every form that an instance needs.

    Attributes:
        tokens: real tokens.
        keys: chained key of every block.
        input_tokens: emulated tokens.
    """

    tokens: tuple[int, ...]
    keys: tuple[int, ...]
    input_tokens: int

    @property
    def blocks(self) -> int:
        """Blocks of the prompt."""
        return len(self.keys)


def read_prompt(
    prompts: Prompts, shape: Shape, req: int, segments: Sequence[int], lengths: Sequence[int]
) -> Prompt:
    """The prompt of spans that came in a message.

    Raises:
        ProtocolError: the spans are none, or not whole blocks.
    """
    if not segments or len(segments) != len(lengths):
        raise ProtocolError("read a prompt", f"request {req}", "its spans do not pair up")
    if any(length <= 0 or length % shape.block_tokens for length in lengths):
        raise ProtocolError("read a prompt", f"request {req}", "a span is not whole blocks")
    spans = tuple(
        Span(segment=segment, tokens=length)
        for segment, length in zip(segments, lengths, strict=True)
    )
    return Prompt(
        prompts.spans(tuple((span.segment, span.tokens // shape.ratio) for span in spans)),
        tuple(block_keys(spans, shape.block_tokens)),
        sum(lengths),
    )
