"""Block keys name a block and everything before it, the same in every process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from testbed.contract.agent import Span
from testbed.contract.block_key import block_keys
from testbed.errors import PlanError

BLOCK = 64
KNOWN = [13389206549525189023, 16317101857893024831, 977782300392696705]
"""Computed from the definition with hashlib and struct alone."""
SPANS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 4).map(lambda n: n * BLOCK)), max_size=5
)


def keys_of(spans: list[tuple[int, int]], block: int = BLOCK) -> list[int]:
    return block_keys(
        tuple(Span(segment=segment, tokens=tokens) for segment, tokens in spans), block
    )


def blocks(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(segment, n) for segment, tokens in spans for n in range(tokens // BLOCK)]


@given(SPANS, SPANS)
def test_keys_are_equal_exactly_as_far_as_the_blocks_are(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    same = True
    rows = zip(keys_of(one), keys_of(other), blocks(one), blocks(other), strict=False)
    for a, b, x, y in rows:
        same = same and x == y
        assert (a == b) == same


@given(SPANS)
def test_there_is_one_key_a_block_and_no_key_twice(spans: list[tuple[int, int]]) -> None:
    keys = keys_of(spans)
    assert len(keys) == len(set(keys)) == sum(tokens for _, tokens in spans) // BLOCK
    assert all(0 <= key < 2**64 for key in keys)


def test_keys_do_not_depend_on_process_or_version() -> None:
    assert keys_of([(7, 128), (2**63 - 1, 64)]) == KNOWN


def test_a_longer_span_extends_the_keys_of_a_shorter_one() -> None:
    assert keys_of([(5, 64 * 9)])[:4] == keys_of([(5, 64 * 4)])


def test_a_span_that_is_no_whole_number_of_blocks_is_refused() -> None:
    with pytest.raises(PlanError, match="whole number of 64-token blocks"):
        keys_of([(0, 65)])


@pytest.mark.parametrize("span", [(0, 0), (0, -64), (-1, 64), (2**63, 64)])
def test_what_is_no_span_is_refused(span: tuple[int, int]) -> None:
    with pytest.raises(ValidationError, match=r"segment|tokens"):
        keys_of([span])


def test_a_block_without_tokens_is_refused() -> None:
    with pytest.raises(PlanError, match="at least one token"):
        keys_of([(0, 64)], 0)
