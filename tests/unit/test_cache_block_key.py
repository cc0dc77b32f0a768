"""Block keys name a block and everything before it, the same in every process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed_agents.cache import chain_keys

BLOCK = 64
KNOWN = (13389206549525189023, 16317101857893024831, 977782300392696705)
"""Computed from the definition with hashlib and struct alone."""
SPANS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 4).map(lambda n: n * BLOCK)), max_size=5
)


def blocks(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(segment, n) for segment, tokens in spans for n in range(tokens // BLOCK)]


@given(SPANS, SPANS)
def test_keys_are_equal_exactly_as_far_as_the_blocks_are(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    first, second = chain_keys(one, BLOCK), chain_keys(other, BLOCK)
    same = True
    for a, b, x, y in zip(first, second, blocks(one), blocks(other), strict=False):
        same = same and x == y
        assert (a == b) == same


@given(SPANS)
def test_there_is_one_key_a_block_and_no_key_twice(spans: list[tuple[int, int]]) -> None:
    keys = chain_keys(spans, BLOCK)
    assert len(keys) == len(set(keys)) == sum(tokens for _, tokens in spans) // BLOCK
    assert all(0 <= key < 2**64 for key in keys)


def test_keys_do_not_depend_on_process_or_version() -> None:
    assert chain_keys([(7, 128), (2**63 - 1, 64)], BLOCK) == KNOWN


def test_a_longer_span_extends_the_keys_of_a_shorter_one() -> None:
    assert chain_keys([(5, 64 * 9)], BLOCK)[:4] == chain_keys([(5, 64 * 4)], BLOCK)


@pytest.mark.parametrize("span", [(0, 0), (0, 65), (0, -64), (-1, 64), (2**63, 64)])
def test_spans_that_make_no_blocks_are_refused(span: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"segment|tokens"):
        chain_keys([span], BLOCK)


def test_a_block_without_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="block"):
        chain_keys([], 0)
