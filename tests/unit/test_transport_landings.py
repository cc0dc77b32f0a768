"""Pages in any order of takes, writes and frees: one owner each, none lost, nobody starves."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.event import EventLog
from testbed_agents.clock import AgentClock
from testbed_agents.transport import Fault, FrameError
from testbed_agents.transport.landings import Freed, Landings
from testbed_agents.transport.pages import Pages


def landings(count: int) -> Landings[int]:
    return Landings(count, EventLog(io.StringIO(), "md1", AgentClock(0)))


@given(st.integers(1, 20), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 8)), max_size=60))
def test_every_page_has_one_owner_or_none(count: int, deeds: list[tuple[int, int]]) -> None:
    pages = Pages(count)
    held: dict[int, tuple[int, ...]] = {}
    for owner, wanted in deeds:
        if owner in held:
            pages.free(held.pop(owner))
        else:
            taken = pages.take((owner, 0), wanted)
            assert (taken is None) is (wanted > pages.free_count + len(taken or ()))
            if taken is not None:
                held[owner] = taken
        owned = [page for taken in held.values() for page in taken]
        assert len(owned) == len(set(owned)) == count - pages.free_count
        assert all(pages.owner(page) == (one, 0) for one, taken in held.items() for page in taken)


@given(st.integers(1, 12), st.lists(st.integers(0, 12), min_size=1, max_size=20), st.data())
def test_who_waits_goes_on_in_order_and_all_come_back(
    count: int, wanted: list[int], data: st.DataObject
) -> None:
    all_ = landings(count)
    holding: list[int] = []
    waiting: list[int] = []
    for request, blocks in enumerate(wanted):
        if blocks > count:
            with pytest.raises(FrameError) as caught:
                all_.begin((request, 0), blocks, request, patient=True)
            assert caught.value.reason is Fault.FULL
            continue
        began = all_.begin((request, 0), blocks, request, patient=True)
        (holding if began else waiting).append(request)
    while holding:
        one = holding.pop(data.draw(st.integers(0, len(holding) - 1)))
        served = all_.free((one, 0), Freed.APPLIED)
        assert list(served) == waiting[: len(served)]
        del waiting[: len(served)]
        holding += served
    assert (waiting, all_.held) == ([], 0)


def test_who_is_impatient_is_told_that_there_are_none() -> None:
    all_ = landings(4)
    assert all_.begin((1, 0), 3, 1, patient=True)
    with pytest.raises(FrameError, match="2 pages wanted, 1 of 4 are free"):
        all_.begin((2, 0), 2, 2, patient=False)


def test_who_leaves_while_it_waits_takes_nothing() -> None:
    all_ = landings(4)
    assert all_.begin((1, 0), 4, 1, patient=True)
    assert not all_.begin((2, 0), 4, 2, patient=True)
    assert not all_.begin((3, 0), 4, 3, patient=True)
    assert all_.free((2, 0), Freed.ENDED) == ()
    assert all_.free((1, 0), Freed.APPLIED) == (3,)


def test_a_page_takes_what_is_written_and_says_whose_it_was() -> None:
    pages = Pages(2)
    (page,) = pages.take((1, 0), 1) or ()
    assert pages.write(page, b"old", (1, 0)) is None
    (view,) = pages.views((page,), [memoryview(b"...")])
    pages.free((page,))
    assert pages.write(page, b"odd", (1, 0)) is None  # nobody's
    assert pages.take((2, 0), 1) == (page,)
    assert pages.write(page, b"new", (1, 0)) == (2, 0)
    assert bytes(view) == b"new"
    with pytest.raises(ValueError, match="free already"):
        pages.free((1 - page,))
