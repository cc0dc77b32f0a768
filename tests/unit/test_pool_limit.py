"""Pools that lost connections or source ports: bounds hold, and nobody is forgotten."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.pool import Order
from testbed_agents.pool.discipline import Discipline, Ending, Grant, Queued
from testbed_agents.pool.fifo import FifoPool
from testbed_agents.pool.lanes import LanesPool
from testbed_agents.pool.lifo import LifoPool
from testbed_agents.pool.line import Line
from testbed_agents.pool.per_transfer import PerTransferPool

pytestmark = pytest.mark.unit
S = 10**9
SIZE, PORTS = 4, 6


def pool_of(kind: str, size: int | None = SIZE) -> Discipline:
    line = Line(100, 10**6 * S, Order.FIRST_COME)
    match kind:
        case "per-transfer":
            return PerTransferPool(size, PORTS, line)
        case "lifo":
            return LifoPool(size, PORTS, line, 10**6 * S)
    return LanesPool(SIZE, line)


STEP = st.one_of(
    st.just(("ask", 0, 0)),
    st.tuples(st.just("release"), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("retire"), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("limit"), st.integers(0, SIZE), st.integers(1, PORTS)),
    st.just(("spare", 0, 0)),
)


@given(kind=st.sampled_from(["per-transfer", "lifo", "lanes"]), steps=st.lists(STEP, max_size=40))
def test_bounds_hold_and_everybody_is_served_in_the_end(
    kind: str, steps: list[tuple[str, int, int]]
) -> None:
    pool = pool_of(kind)
    fewer, ports = 0, PORTS
    held: list[int] = []
    waiting: set[int] = set()

    def take(*grants: Grant | None) -> None:
        for grant in grants:
            if grant is not None:
                assert grant.connection not in held
                if grant.opens:
                    assert grant.connection < ports
                    assert pool.busy + pool.idle <= SIZE - fewer
                held.append(grant.connection)
                waiting.discard(grant.ticket)

    for what, first, second in steps:
        match what:
            case "ask":
                outcome = pool.request(0)
                if isinstance(outcome, Queued):
                    waiting.add(outcome.ticket)
                elif isinstance(outcome, Grant):
                    take(outcome)
            case "limit":
                fewer, ports = first, second
                take(*pool.limit(fewer, None if ports == PORTS else ports, 0))
                assert pool.idle == 0 or pool.busy + pool.idle <= SIZE - fewer
            case "spare" if (grant := pool.spare(0)) is not None:
                take(grant)
            case "release" | "retire" if held:
                connection = held.pop(first % len(held))
                take((pool.release if what == "release" else pool.retire)(connection, 0))
        pool.closings()
        assert pool.busy == len(held)
        assert pool.waiting == len(waiting)
    fewer, ports = 0, PORTS
    take(*pool.limit(0, None, 0))
    while held:
        take(pool.release(held.pop(), 0))
    assert not waiting


def test_ports_that_were_not_to_be_had_are_the_first_to_be_used_again() -> None:
    pool = pool_of("per-transfer", None)
    pool.limit(0, 2, 0)
    used = []
    for _ in range(3):
        grant = pool.request(0)
        assert isinstance(grant, Grant)
        used.append(grant.connection)
        pool.release(grant.connection, 0)
    pool.limit(0, None, 0)
    grant = pool.request(0)
    assert isinstance(grant, Grant)
    assert (used, grant.connection) == ([0, 1, 0], 2)


def test_what_a_small_pool_cannot_keep_is_given_up_after_its_transfer() -> None:
    pool = pool_of("lifo")
    grants = [pool.request(0) for _ in range(3)]
    pool.limit(3, None, 0)
    for grant in grants:
        assert isinstance(grant, Grant)
        pool.release(grant.connection, 0)
    assert [one.reason for one in pool.closings()] == [Ending.SHRUNK] * 2
    assert pool.idle == 1


def test_standing_connections_have_no_limit() -> None:
    with pytest.raises(ValueError, match="stand"):
        FifoPool(2, 0, S).limit(1, None, 0)
