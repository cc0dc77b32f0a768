"""Prompts really share the prefixes that their hits claim."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.agent import Request, Span
from testbed.errors import PlanError
from testbed.workload.prefix import (
    Prompt,
    SessionPrompts,
    block_keys,
    document_prompts,
    expected_hits,
    session_prompts,
    traced_prompts,
    whole_documents,
)
from testbed.workload.prefix.documents import Column
from testbed.workload.stream import stream
from testbed.workload.traces.trace import Row, Trace, columns

pytestmark = pytest.mark.unit

BLOCK = 128
SPANS = st.tuples(st.integers(0, 2), st.integers(1, 3))
PROMPTS = st.lists(
    st.lists(SPANS, min_size=1, max_size=4).map(
        lambda spans: tuple(Span(segment=s, tokens=n * BLOCK) for s, n in spans)
    ),
    max_size=12,
)


def column(*values: int) -> Column:
    return np.array(values, dtype=np.int64)


def length(prompt: Prompt) -> int:
    return sum(span.tokens for span in prompt)


def by_keys(prompts: Sequence[Prompt], held: Sequence[Prompt] = ()) -> list[int]:
    """The hits by their definition: every key of every block, and a set."""
    seen = {key for prompt in held for key in block_keys(prompt, BLOCK)}
    hits = []
    for prompt in prompts:
        keys = block_keys(prompt, BLOCK)
        hits.append(next((i for i, key in enumerate(keys) if key not in seen), len(keys)))
        seen.update(keys)
    return hits


@given(PROMPTS, PROMPTS)
def test_expected_hits_are_those_of_a_set_of_block_keys(
    prompts: list[Prompt], held: list[Prompt]
) -> None:
    assert expected_hits(prompts, BLOCK, held) == by_keys(prompts, held)


@given(PROMPTS)
def test_keys_are_equal_exactly_where_prefixes_are(prompts: list[Prompt]) -> None:
    prefix_of: dict[int, tuple[tuple[int, int], ...]] = {}
    key_of: dict[tuple[tuple[int, int], ...], int] = {}
    for prompt in prompts:
        blocks = [(s.segment, i) for s in prompt for i in range(s.tokens // BLOCK)]
        keys = block_keys(prompt, BLOCK)
        assert len(keys) == len(blocks)
        for end, key in enumerate(keys, 1):
            prefix = tuple(blocks[:end])
            assert prefix_of.setdefault(key, prefix) == prefix
            assert key_of.setdefault(prefix, key) == key


def test_a_key_is_the_same_in_every_process() -> None:
    assert block_keys((Span(segment=3, tokens=2 * BLOCK),), BLOCK) == [
        9283588355682433232,
        9649279555267182448,
    ]


def test_a_span_of_part_of_a_block_is_refused() -> None:
    with pytest.raises(PlanError, match="not a whole number of 128-token blocks"):
        expected_hits([(Span(segment=0, tokens=100),)], BLOCK)


def test_a_request_holds_its_input_in_spans_and_writes_them_only_if_there_are_any() -> None:
    plain = Request(
        id=0, at_ns=0, input_tokens=256, hit_tokens=0, output_tokens=1, blocks=2,
        wire_bytes=1, prefill="p1", decode="md1",
    )  # fmt: skip
    assert "prompt" not in plain.model_dump_json()
    fields = plain.model_dump()
    spans = (Span(segment=1, tokens=128), Span(segment=2, tokens=128))
    spoken = Request.model_validate(fields | {"prompt": spans})
    assert Request.model_validate_json(spoken.model_dump_json()).prompt == spans
    with pytest.raises(ValueError, match="do not add up"):
        Request.model_validate(fields | {"prompt": spans[:1]})


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**31),
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 5_000)), min_size=1, max_size=40),
)
def test_documents_give_the_drawn_hits_with_one_block_left(
    seed: int, documents: int, drawn: list[tuple[int, int]]
) -> None:
    inputs = column(*(blocks * BLOCK for blocks, _ in drawn))
    hits = column(*(hit for _, hit in drawn))
    prompts = document_prompts(inputs, hits, documents, BLOCK, stream(seed, "documents"))
    assert [length(prompt) for prompt in prompts] == inputs.tolist()
    wanted = np.minimum(hits // BLOCK, inputs // BLOCK - 1).tolist()
    warm = expected_hits(prompts, BLOCK, whole_documents(documents, int(inputs.max())))
    assert warm == wanted
    cold = expected_hits(prompts, BLOCK)
    assert all(one <= other for one, other in zip(cold, wanted, strict=True))
    assert prompts == document_prompts(inputs, hits, documents, BLOCK, stream(seed, "documents"))


@pytest.mark.parametrize("kind", ["beta", "uniform"])
@pytest.mark.parametrize("documents", [1, 8])
def test_documents_keep_the_mean_of_a_distribution(kind: str, documents: int) -> None:
    count, blocks = 4_000, 512
    draw = stream(11, "hit")
    shares = (
        0.02 + 0.97 * draw.beta(0.788, 0.081, count)
        if kind == "beta"
        else draw.uniform(0.85, 0.95, count)
    )
    mean, spread = (0.8996, 0.97 * 0.212) if kind == "beta" else (0.9, 0.1 / math.sqrt(12))
    inputs = np.full(count, blocks * BLOCK, dtype=np.int64)
    hits = np.floor(blocks * shares).astype(np.int64) * BLOCK
    prompts = document_prompts(inputs, hits, documents, BLOCK, stream(11, "documents"))
    got = np.array(expected_hits(prompts, BLOCK)) / blocks
    # Four standard errors; a block lost to rounding; and a cold cache, which each of the
    # documents leaves after at most a few requests (each loses at most one whole prompt).
    tolerance = 4 * spread / math.sqrt(count) + 1 / blocks + 4 * documents / count
    assert got.mean() == pytest.approx(mean, abs=tolerance)
    used = {prompt[0].segment for prompt in prompts if len(prompt) > 1}
    assert used == set(range(documents))


def test_documents_are_chosen_by_the_seed() -> None:
    inputs, hits = np.full(64, 1024, dtype=np.int64), np.full(64, 512, dtype=np.int64)
    one, other = (document_prompts(inputs, hits, 4, BLOCK, stream(s, "d")) for s in (1, 2))
    assert one != other


def sessions(
    seed: int, count: int, concurrent: int, turns: float, high: int = 2**30
) -> SessionPrompts:
    draw = stream(seed, "lengths")
    return session_prompts(
        draw.integers(1, 9, count) * BLOCK,
        draw.integers(1, 600, count),
        concurrent,
        turns,
        1000,
        high,
        BLOCK,
        stream(seed, "sessions"),
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 9), st.floats(1, 20), st.sampled_from([2048, 2**30]))
def test_a_turn_hits_exactly_the_turn_before(
    seed: int, concurrent: int, turns: float, high: int
) -> None:
    made = sessions(seed, 120, concurrent, turns, high)
    hits = expected_hits(made.prompts, BLOCK)
    assert hits == by_keys(made.prompts)
    last: dict[int, tuple[int, int]] = {}
    for index, prompt in enumerate(made.prompts):
        number, turn = int(made.session[index]), int(made.turn[index])
        assert length(prompt) <= high
        assert prompt[0] == Span(segment=0, tokens=896)  # 1,000 in whole blocks
        before_turn, before_tokens = last.get(number, (0, 896 if index else 0))
        assert turn == before_turn + 1
        assert hits[index] * BLOCK == before_tokens < length(prompt)
        last[number] = (turn, length(prompt))
    repeated = sessions(seed, 120, concurrent, turns, high)
    assert repeated.prompts == made.prompts


def test_sessions_have_the_mean_number_of_turns_and_are_concurrent() -> None:
    count, turns = 20_000, 8.0
    made = sessions(5, count, 16, turns)
    opened = int(made.session.max()) + 1
    # Ends are independent with chance 1 / turns: four standard errors, and 16 unfinished.
    expected = count / turns
    assert abs(opened - expected) <= 4 * math.sqrt(expected) + 16
    first_end = int(np.flatnonzero(made.session >= 16)[0])
    assert set(made.session[: first_end + 400].tolist()) >= set(range(16))


@pytest.mark.parametrize(
    ("concurrent", "turns", "high", "reason"),
    [(0, 2.0, 4096, "at least 1"), (1, 0.5, 4096, "at least 1"), (1, 2.0, 1024, "longer than")],
)
def test_impossible_sessions_are_refused(
    concurrent: int, turns: float, high: int, reason: str
) -> None:
    with pytest.raises(PlanError, match=reason):
        sessions(1, 100, concurrent, turns, high)


@st.composite
def traces(draw: st.DrawFn) -> tuple[Trace, list[tuple[int, ...]]]:
    """A trace of random prompts, and what its tokens are: one number for each."""
    size = draw(st.sampled_from([2, 3, 4]))
    texts = draw(
        st.lists(
            st.lists(st.integers(0, 1), min_size=1, max_size=24).map(tuple), min_size=1, max_size=8
        )
    )
    number: dict[tuple[int, ...], int] = {}
    rows = [
        Row(
            at_ns=0,
            input_tokens=len(text),
            output_tokens=1,
            block_ids=[
                number.setdefault(text[: begin + size], 1_000 - len(number))
                for begin in range(0, len(text), size)
            ],
        )
        for text in texts
    ]
    return columns(rows, size), texts


@given(traces(), st.sampled_from([1, 2, 3, 4, 6, 8]))
def test_traced_prompts_share_only_what_the_trace_shares(
    made: tuple[Trace, list[tuple[int, ...]]], block: int
) -> None:
    trace, texts = made
    inputs = np.maximum(1, trace.input_tokens // block) * block
    prompts = traced_prompts(trace, inputs, block)
    assert [length(prompt) for prompt in prompts] == inputs.tolist()
    size = trace.block_tokens
    begun: dict[int, tuple[int, ...]] = {}
    key_of: dict[tuple[int, ...], int] = {}
    for text, prompt in zip(texts, prompts, strict=True):
        for end, key in enumerate(block_keys(prompt, block), 1):
            # The traced block in which ours ends decides, up to the end of that block.
            reach = -(-min(end * block, len(text)) // size) * size
            prefix = text[:reach]
            assert begun.setdefault(key, text[: end * block]) == text[: end * block]
            if block % size == 0 or size % block == 0:
                assert key_of.setdefault((end, *prefix), key) == key


@given(traces())
def test_at_the_trace_s_own_block_the_hits_are_the_trace_s(
    made: tuple[Trace, list[tuple[int, ...]]],
) -> None:
    trace, _ = made
    size = trace.block_tokens
    whole = np.maximum(1, trace.input_tokens // size) * size
    assert trace.hit_tokens is not None
    hits = np.array(expected_hits(traced_prompts(trace, whole, size), size)) * size
    full = trace.input_tokens >= size
    assert (hits[full] == (trace.hit_tokens // size * size)[full]).all()


def test_blocks_without_an_id_are_shared_with_nobody() -> None:
    rows = [Row(at_ns=0, input_tokens=8, output_tokens=1, block_ids=[5]) for _ in range(2)]
    prompts = traced_prompts(columns(rows, 4), column(8, 8), 4)
    assert expected_hits(prompts, 4) == [0, 1]
    assert [length(prompt) for prompt in prompts] == [8, 8]


def test_a_trace_without_block_ids_gives_no_prompts() -> None:
    trace = columns([Row(at_ns=0, input_tokens=8, output_tokens=1)], 0)
    with pytest.raises(PlanError, match="no block ids"):
        traced_prompts(trace, column(8), 4)


def test_a_length_beyond_the_trace_s_is_refused() -> None:
    trace = columns([Row(at_ns=0, input_tokens=8, output_tokens=1, block_ids=[1, 2])], 4)
    with pytest.raises(PlanError, match="within the trace's lengths"):
        traced_prompts(trace, column(12), 4)
