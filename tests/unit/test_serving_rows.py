"""Prompts as spans and KV by blocks: what goes in comes out, bit for bit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.agent import ModelConfig, Shape
from testbed.errors import ProtocolError
from testbed_agents.model.kv import Kv
from testbed_agents.model.load import load_model
from testbed_agents.model.prompt import SeededPrompts
from testbed_agents.serving.prompt import read_prompt
from testbed_agents.serving.rows import block_bytes, join, pieces

MODEL = load_model(ModelConfig(name="nano"))
PROMPTS = SeededPrompts(7)
SHAPE = Shape(block_tokens=256, ratio=128, bytes_per_token=1000)
BLOCK = 2
spans = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 4).map(lambda n: n * 256)), min_size=1, max_size=4
)


@given(spans, spans)
def test_keys_are_equal_exactly_as_far_as_tokens_are(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    a, b = (
        read_prompt(PROMPTS, SHAPE, 1, [s for s, _ in p], [n for _, n in p]) for p in (one, other)
    )
    shared = 0
    while shared < min(a.blocks, b.blocks) and a.keys[shared] == b.keys[shared]:
        shared += 1
    assert a.tokens[: shared * BLOCK] == b.tokens[: shared * BLOCK]
    if shared < min(a.blocks, b.blocks):
        assert a.tokens[: (shared + 1) * BLOCK] != b.tokens[: (shared + 1) * BLOCK]


@given(st.integers(0, 6))
def test_rows_put_together_from_pieces_are_the_rows(cut: int) -> None:
    tokens = PROMPTS.spans(((3, 12),))
    front = MODEL.prefill(tokens[: cut * BLOCK])
    back = MODEL.prefill(tokens[cut * BLOCK :], front)
    whole = front.join(back)
    parts = (*pieces(front, BLOCK), *pieces(back, BLOCK))
    joined = join(Kv(MODEL.layout), parts, BLOCK)
    assert len(joined.segments()) <= 2
    assert block_bytes(parts, BLOCK) == joined.blocks(BLOCK)
    assert [bytes(b) for b in joined.blocks(BLOCK)] == [bytes(b) for b in whole.blocks(BLOCK)]


@pytest.mark.parametrize(
    ("segments", "lengths"), [((), ()), ((1,), ()), ((1,), (0,)), ((1,), (100,)), ((1, 2), (256,))]
)
def test_spans_that_make_no_prompt_are_refused(
    segments: tuple[int, ...], lengths: tuple[int, ...]
) -> None:
    with pytest.raises(ProtocolError, match="read a prompt"):
        read_prompt(PROMPTS, SHAPE, 1, segments, lengths)
