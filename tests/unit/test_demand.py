"""What a scenario asks of a live machine, from its links, its requests and its model."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.agent import Request
from testbed.plan.demand import TOLERATED, demand_of, shortest_ns
from testbed.run.prepare import prepare
from testbed.scenario import load_scenario

pytestmark = pytest.mark.unit

SUPERFRAME = 65_536


def asked(name: str, *overrides: str) -> tuple[Request, ...]:
    return prepare(name, overrides).requests


def test_full_lines_cross_three_wires() -> None:
    scenario = load_scenario("hello")
    demand = demand_of(scenario, asked("hello"), 1.0)
    assert demand.superframes_per_s == pytest.approx(3 * 2 * 10e9 / 8 / SUPERFRAME)
    assert demand.frames_per_s == 0
    assert demand.shortest_ns == 10_000_000


def test_lines_that_carry_frames_count_frames() -> None:
    scenario = load_scenario("hello", ("links.wan.segmentation=frame",))
    demand = demand_of(scenario, asked("hello"), 1.0)
    assert demand.frames_per_s == pytest.approx(2 * 10e9 / 8 / 9014)
    assert demand.superframes_per_s == pytest.approx(2 * 2 * 10e9 / 8 / SUPERFRAME)


def test_the_way_to_rld_counts_as_bursts_within_a_part_of_a_step() -> None:
    scenario, requests = load_scenario("pdd-hello"), asked("pdd-hello")
    demand = demand_of(scenario, requests, 1.0)
    burst = 2 * 4096 * scenario.shape.bytes_per_token / (TOLERATED * 0.041)
    lines = 3 * 2 * 100e6 / 8
    assert demand.superframes_per_s == pytest.approx((2 * burst + lines) / SUPERFRAME)


def test_within_a_rack_transfers_are_what_is_short() -> None:
    scenario, requests = load_scenario("idc-pd"), asked("idc-pd")
    largest = max(request.wire_bytes for request in requests)
    assert shortest_ns(scenario, requests) == pytest.approx(4_000 + largest * 8 / 400, abs=1)
    demand = demand_of(scenario, requests, 1.0)
    assert demand.superframes_per_s == pytest.approx(2 * 2 * 400e9 / 8 / SUPERFRAME)


@settings(max_examples=20, deadline=None)
@given(slow=st.floats(1, 1000))
def test_slow_motion_asks_so_many_times_less(slow: float) -> None:
    scenario, requests = load_scenario("pdd-hello"), asked("pdd-hello")
    quick, late = demand_of(scenario, requests, 1.0), demand_of(scenario, requests, slow)
    assert late.superframes_per_s == pytest.approx(quick.superframes_per_s / slow)
    assert late.computing == pytest.approx(quick.computing / slow)
    assert late.shortest_ns == quick.shortest_ns
