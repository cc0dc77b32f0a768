"""Whose turn it is: by arrival, by size, by deadline; and how long anybody waits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.pool import Order
from testbed_agents.pool import Claim, Line

PATIENCE_NS = 50
CLAIMS = {0: Claim(300, 9), 1: Claim(100, 7), 2: Claim(200, 8), 3: Claim(100, 7)}


@pytest.mark.parametrize(
    ("order", "served"),
    [
        (Order.FIRST_COME, [0, 1, 2, 3]),
        (Order.SMALLEST_FIRST, [1, 3, 2, 0]),
        (Order.EARLIEST_DEADLINE, [1, 3, 2, 0]),
    ],
)
def test_the_order_decides_and_equals_keep_theirs(order: Order, served: list[int]) -> None:
    line = Line(9, PATIENCE_NS, order)
    for ticket, claim in CLAIMS.items():
        line.join(ticket, ticket, claim)
    assert [line.next()[0] for _ in CLAIMS] == served


def test_without_a_deadline_the_time_of_asking_stands_for_it() -> None:
    line = Line(9, PATIENCE_NS, Order.EARLIEST_DEADLINE)
    line.join(0, 30, Claim())
    line.join(1, 31, Claim(due_ns=20))
    assert [line.next()[0], line.next()[0]] == [1, 0]


def test_nobody_is_taken_from_an_empty_line() -> None:
    for order in Order:
        with pytest.raises(KeyError):
            Line(1, PATIENCE_NS, order).next()


def test_bounds_that_mean_nothing_are_refused() -> None:
    for most, patience_ns in ((-1, 1), (1, 0)):
        with pytest.raises(ValueError, match="a line needs"):
            Line(most, patience_ns)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["join", "join", "leave", "next", "expire"]),
        st.integers(0, 5), st.integers(0, 5), st.integers(0, 30),
    ),
    max_size=80,
)  # fmt: skip


@given(st.sampled_from(Order), STEPS)
@settings(max_examples=150, deadline=None)
def test_any_mixture_serves_as_a_sorted_list_would(
    order: Order, steps: list[tuple[str, int, int, int]]
) -> None:
    line, model, now_ns = Line(1_000, PATIENCE_NS, order), list[tuple[int, int, int]](), 0
    for ticket, (step, size, due_ns, later_ns) in enumerate(steps):
        now_ns += later_ns
        late = [one for one in model if one[1] + PATIENCE_NS <= now_ns]
        if step == "expire":
            assert line.expire(now_ns) == tuple(one[0] for one in late)
            model = [one for one in model if one not in late]
        elif step == "join":
            assert line.join(ticket, now_ns, Claim(size, due_ns)) == now_ns + PATIENCE_NS
            keys = {Order.FIRST_COME: ticket, Order.SMALLEST_FIRST: size}
            model.append((ticket, now_ns, keys.get(order, due_ns)))
        elif step == "leave" and model:
            left = model.pop(size % len(model))
            assert line.leave(left[0])
            assert not line.leave(left[0])
        elif step == "next" and model:
            first = min(model, key=lambda one: (one[2], one[0]))
            model.remove(first)
            assert line.next() == first[:2]
        assert len(line) == len(model)
        assert line.next_deadline_ns == (model[0][1] + PATIENCE_NS if model else None)
        assert len(line._heap) <= 2 * len(model) + 80
    assert line.clear() == tuple(one[0] for one in model)
    assert not line
