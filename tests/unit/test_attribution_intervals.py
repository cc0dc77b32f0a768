"""Sets of time: union, intersection and difference agree with sets of moments."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.metrics.attribution.intervals import (
    Intervals,
    common,
    first,
    measure,
    united,
    without,
)

pytestmark = pytest.mark.unit

PARTS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=6)


def moments(parts: Intervals) -> set[int]:
    return {t for begin, end in parts for t in range(begin, end)}


@given(PARTS)
def test_a_union_is_sorted_and_disjoint_and_holds_every_moment(
    parts: list[tuple[int, int]],
) -> None:
    found = united(parts)
    assert moments(found) == moments(tuple(parts))
    assert all(a < b for a, b in found)
    assert all(one[1] < other[0] for one, other in pairwise(found))


@given(PARTS, PARTS)
def test_intersection_and_difference_are_those_of_their_moments(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    a, b = united(one), united(other)
    assert moments(common(a, b)) == moments(a) & moments(b)
    assert moments(without(a, b)) == moments(a) - moments(b)
    assert measure(a) == measure(common(a, b)) + measure(without(a, b))


@given(PARTS, st.integers(-3, 50))
def test_the_first_of_it_is_as_long_as_asked_or_all_of_it(
    parts: list[tuple[int, int]], length: int
) -> None:
    whole = united(parts)
    found = first(whole, length)
    assert measure(found) == min(max(length, 0), measure(whole))
    assert sorted(moments(found)) == sorted(moments(whole))[: max(length, 0)]
