"""How busy a line is, from what was delivered over it and what is under way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed_agents.router.egress import Egress

pytestmark = pytest.mark.unit

S = 1_000_000_000
BPS = 8_000  # 1,000 bytes a second


def test_a_delivery_counts_with_the_part_of_it_in_the_window() -> None:
    egress = Egress()
    egress.delivered("a-b", 2 * S, S // 2, 500)
    assert egress.used("a-b", 2 * S, BPS, 0) == pytest.approx(0.5)
    assert egress.used("a-b", 2 * S + 3 * S // 4, BPS, 0) == pytest.approx(0.25)
    assert egress.used("a-b", 3 * S, BPS, 0) == 0.0
    egress.delivered("a-b", 5 * S, 2 * S, 3_000)
    assert egress.used("a-b", 5 * S, BPS, 0) == pytest.approx(1.5)


def test_lines_are_apart_and_what_is_under_way_counts_at_once() -> None:
    egress = Egress()
    egress.delivered("a-b", S, 0, 400)
    assert egress.used("a-b", S, BPS, 800) == pytest.approx(1.2)
    assert egress.used("c-b", S, BPS, 800) == pytest.approx(0.8)
    assert egress.used("a-b", S, 0, 800) == 0.0


@given(st.lists(st.tuples(st.integers(0, S), st.integers(0, S), st.integers(0, 10**6))))
def test_transfers_that_fit_a_window_are_counted_whole(rows: list[tuple[int, int, int]]) -> None:
    egress, now = Egress(), 4 * S
    recent: list[tuple[int, int]] = []
    for gap, took, size in rows:
        now += gap
        egress.delivered("a-b", now, took, size)
        recent = [one for one in recent if one[0] > now - S] + [(now, size)]
        most = sum(one[1] for one in recent)
        used = egress.used("a-b", now, BPS, 0) * BPS / 8
        assert size - 1e-6 <= used <= most + 1e-6
