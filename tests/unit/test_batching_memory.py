"""KV memory is given in order of arrival, never beyond the limit, and comes back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed_agents.batching import KvMemory

SIZES = st.lists(st.integers(0, 10), max_size=12)


def admitted(memory: KvMemory) -> list[int]:
    out = []
    while (one := memory.admit()) is not None:
        out.append(one)
    return out


@given(sizes=SIZES, data=st.data())
def test_all_are_admitted_in_order_and_the_limit_holds(
    sizes: list[int], data: st.DataObject
) -> None:
    memory = KvMemory(10)
    for identity, size in enumerate(sizes):
        memory.submit(identity, size)
    order = held = admitted(memory)
    while held:
        assert memory.used == sum(sizes[one] for one in held) <= 10
        gone = data.draw(st.sampled_from(held))
        assert memory.leave(gone)
        fresh = admitted(memory)
        order = order + fresh
        held = [one for one in held if one != gone] + fresh
    assert order == list(range(len(sizes)))
    assert (memory.used, memory.waiting) == (0, 0)


def test_a_small_one_does_not_overtake_a_large_one() -> None:
    memory = KvMemory(10)
    for identity, size in enumerate((6, 6, 1)):
        memory.submit(identity, size)
    assert admitted(memory) == [0]
    assert memory.leave(1)
    assert admitted(memory) == [2]
    assert not memory.leave(1)


def test_without_a_limit_everybody_comes_in() -> None:
    memory = KvMemory(0)
    memory.submit(1, 1 << 50)
    memory.submit(2, 1 << 50)
    assert admitted(memory) == [1, 2]


def test_what_can_never_fit_is_not_taken() -> None:
    memory = KvMemory(10)
    assert not memory.fits(11)
    with pytest.raises(ValueError, match="cannot hold 11"):
        memory.submit(1, 11)


def test_a_sequence_is_taken_once() -> None:
    memory = KvMemory(10)
    memory.submit(1, 1)
    with pytest.raises(ValueError, match="already"):
        memory.submit(1, 1)
