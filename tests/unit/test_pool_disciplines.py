"""Pools that open on demand: which connection is next, and when it is closed."""

from __future__ import annotations

import pytest

from testbed_agents.pool import (
    Closing,
    Ending,
    Grant,
    LanesPool,
    LifoPool,
    Line,
    PerTransferPool,
    Queued,
    Refusal,
)

PATIENCE_NS = 1_000
IDLE_NS = 700


def granted(outcome: Grant | Queued | Refusal | None) -> Grant:
    assert isinstance(outcome, Grant)
    return outcome


def line(most: int = 4) -> Line:
    return Line(most, PATIENCE_NS)


def test_each_transfer_has_a_fresh_connection_and_ports_are_taken_in_turn() -> None:
    pool = PerTransferPool(None, 3, line())
    seen = []
    for now_ns in range(5):
        grant = granted(pool.request(now_ns))
        assert grant.opens
        assert pool.release(grant.connection, now_ns) is None
        assert pool.closings() == (Closing(grant.connection, Ending.AFTER_USE),)
        seen.append(grant.connection)
    assert seen == [0, 1, 2, 0, 1]


def test_a_port_that_was_never_used_is_the_next_again() -> None:
    pool = PerTransferPool(None, 3, line())
    failed = granted(pool.request(0))
    assert pool.retire(failed.connection, 0) is None
    assert granted(pool.request(1)).connection == failed.connection
    assert pool.closings() == ()


def test_without_a_bound_nobody_waits_and_no_port_is_named() -> None:
    pool = PerTransferPool(None, 2, line())
    granted(pool.request(0))
    granted(pool.request(0))
    assert pool.request(0) is Refusal.NO_PORT


def test_with_a_bound_the_next_gets_a_fresh_one_too() -> None:
    pool = PerTransferPool(1, 3, line())
    held = granted(pool.request(0))
    waiting = pool.request(1)
    assert isinstance(waiting, Queued)
    assert pool.release(held.connection, 5) == Grant(waiting.ticket, 1, 4, opens=True)


def test_the_connection_used_last_goes_first() -> None:
    pool = LifoPool(None, 9, line(), IDLE_NS)
    first, second = granted(pool.request(0)), granted(pool.request(0))
    pool.release(first.connection, 1)
    pool.release(second.connection, 2)
    again = granted(pool.request(3))
    assert (again.connection, again.opens) == (second.connection, False)


def test_what_stays_idle_is_closed_and_what_is_used_is_not() -> None:
    pool = LifoPool(None, 9, line(), IDLE_NS)
    held = [granted(pool.request(0)).connection for _ in range(4)]
    for connection in held:
        pool.release(connection, 10)
    busy = granted(pool.request(20)).connection
    assert pool.next_deadline_ns == 10 + IDLE_NS
    assert pool.expire(9 + IDLE_NS) == ()
    assert pool.closings() == ()
    pool.expire(10 + IDLE_NS)
    assert pool.closings() == tuple(Closing(one, Ending.IDLE) for one in held if one != busy)
    assert (pool.idle, pool.busy, pool.next_deadline_ns) == (0, 1, None)


def test_few_lanes_are_used_where_few_are_needed() -> None:
    pool = LanesPool(4, line())
    held = [granted(pool.request(0)).connection for _ in range(3)]
    assert held == [0, 1, 2]
    for connection in reversed(held):
        pool.release(connection, 1)
    assert [granted(pool.request(2)).connection for _ in range(2)] == [0, 1]


def test_a_lane_that_broke_is_opened_anew_for_whose_turn_it_is() -> None:
    pool = LanesPool(1, line())
    held = granted(pool.request(0))
    waiting = pool.request(0)
    assert isinstance(waiting, Queued)
    assert pool.retire(held.connection, 7) == Grant(waiting.ticket, 0, 7, opens=True)


def test_closing_gives_up_what_is_idle_at_once_and_what_is_busy_later() -> None:
    pool = LifoPool(2, 9, line(), IDLE_NS)
    first, second = granted(pool.request(0)), granted(pool.request(0))
    waiting = pool.request(0)
    assert isinstance(waiting, Queued)
    pool.cancel(waiting.ticket, 0)
    pool.release(first.connection, 1)
    assert pool.close(2) == ()
    assert pool.closings() == (Closing(first.connection, Ending.CLOSED),)
    assert pool.request(3) is Refusal.CLOSED
    pool.release(second.connection, 4)
    assert pool.closings() == (Closing(second.connection, Ending.CLOSED),)


def test_misuse_is_an_error() -> None:
    pool = LifoPool(2, 9, line(), IDLE_NS)
    held = granted(pool.request(10)).connection
    with pytest.raises(ValueError, match="not busy"):
        pool.release(held + 1, 11)
    with pytest.raises(ValueError, match="not broken"):
        pool.restore(held, 11)
    pool.retire(held, 11)
    with pytest.raises(ValueError, match="neither busy nor idle"):
        pool.retire(held, 11)
    with pytest.raises(ValueError, match="backwards"):
        pool.request(9)
    with pytest.raises(ValueError, match="size <= ports"):
        PerTransferPool(4, 3, line())
    with pytest.raises(ValueError, match="idle_timeout_ns"):
        LifoPool(None, 3, line(), 0)
