"""The model of Linux's multipath hash says what Linux 6.12 was seen to do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.shaping.multipath import hop_index, multipath_hash

pytestmark = pytest.mark.unit

P1, MD1 = "10.1.2.2", "10.2.1.2"
"""Of ``two-dc`` with one client."""
ADDRESSES = st.ip_addresses(v=4).map(str)
ENDS = st.tuples(ADDRESSES, st.integers(1, 65_535))


@pytest.mark.parametrize(
    ("connections", "on_first"), [(64, 31), (128, 63), (160, 79), (192, 95), (256, 128)]
)
def test_it_splits_connections_as_measured(connections: int, on_first: int) -> None:
    """The figures that ``topologies/two-dc.yaml`` names, measured in the guest."""
    legs = [hop_index((P1, 20_000 + n), (MD1, 7001), 2, (1, 1)) for n in range(connections)]
    assert legs.count(0) == on_first


@given(ENDS, ENDS, st.integers(1, 2**32 - 1))
def test_both_directions_have_one_hash_of_31_bits(
    one: tuple[str, int], other: tuple[str, int], seed: int
) -> None:
    there = multipath_hash(one, other, seed)
    assert there == multipath_hash(other, one, seed)
    assert 0 <= there < 2**31


@given(ENDS, ENDS, st.integers(1, 2**32 - 1), st.lists(st.integers(1, 256), min_size=1, max_size=8))
def test_the_hop_is_one_of_those_there_are(
    one: tuple[str, int], other: tuple[str, int], seed: int, weights: list[int]
) -> None:
    assert 0 <= hop_index(one, other, seed, weights) < len(weights)


def test_weights_split_as_they_say() -> None:
    legs = [hop_index((P1, port), (MD1, 7001), 2, (3, 1)) for port in range(10_000, 14_000)]
    assert legs.count(0) / len(legs) == pytest.approx(0.75, abs=0.03)
