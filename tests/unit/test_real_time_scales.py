"""Every scenario says at which scale a live machine carries it, and a small one does."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.contract.plan import Plan
from testbed.contract.role import Role
from testbed.contract.scale import paced
from testbed.metrics.path import round_trip_ns
from testbed.plan import HostFacts, RunPaths, capacity, make_plan, names_of, roster
from testbed.plan.dimension import scale_words
from testbed.plan.headroom import REFERENCE, headroom
from testbed.plan.scale import scaled
from testbed.run.prepare import prepare
from testbed.scenario import load_scenario
from testbed.scenario.data import DataKind, names
from testbed.scenario.workload import TraceArrivals
from testbed.workload import draw, load_trace

pytestmark = pytest.mark.unit


HOST = HostFacts(cores=2, memory_free_bytes=2**36, disk_free_bytes=2**40)


def live(name: str) -> Plan:
    """The plan of a scenario at its scale under the real clock, on a machine with enough memory."""
    written = load_scenario(name)
    scenario, scale = scaled(written, written.file.real_time)
    members, wan = roster(scenario), capacity(scenario)
    arrivals = scenario.workload.arrivals
    trace = None
    if isinstance(arrivals, TraceArrivals):
        trace = load_trace(Path(arrivals.file), arrivals.take, arrivals.format)
    prefills, decodes = names_of(members, Role.PREFILL), names_of(members, Role.DECODE)
    requests, offered = draw(
        scenario.workload, scenario.shape, prefills, decodes, scenario.window, scenario.seed,
        wan.leg_payload_bps, wan.legs, trace, spans_wanted=scenario.file.serving is not None,
    )  # fmt: skip
    return make_plan(
        scenario, requests, offered, scenario.seed, HOST, "mininet", "real", "guest",
        RunPaths(weights="/mnt/weights/model"), scale=scale,
    )  # fmt: skip


@pytest.mark.parametrize("name", names(DataKind.SCENARIOS))
def test_a_two_core_machine_carries_every_scenario_at_its_scale(name: str) -> None:
    assert load_scenario(name).file.real_time is not None
    plan = live(name)
    assert plan.demand is not None
    found = headroom(plan.demand, REFERENCE, plan.scale)
    assert found.fits, found
    assert max(link.forward.rate_bps for link in plan.network.links) <= 20e9
    assert len(scale_words(plan)) >= 3


def test_a_virtual_run_is_full_size_and_says_nothing_of_scales() -> None:
    plan = prepare("pdd-hello").plan
    assert plan.scale.full
    assert plan.demand is None
    assert scale_words(plan) == ()


def test_a_virtual_run_at_scale_has_the_network_of_the_live_one() -> None:
    virtual = prepare("pdd-hello", at_scale=True).plan
    live = prepare("pdd-hello", clock="real").plan
    assert virtual.network == live.network
    assert virtual.scale == live.scale
    assert [agent.slow for agent in virtual.agents] == [4.0] * 7


def test_the_network_is_built_slower_and_events_see_it_at_its_own_speed() -> None:
    plan = prepare("pdd-hello", clock="real").plan
    assert round_trip_ns(plan.network, "p1", "md1") == 4 * round_trip_ns(plan.emulated, "p1", "md1")
    for built, seen in zip(plan.network.links, plan.emulated.links, strict=True):
        assert seen.forward.rate_bps == pytest.approx(4 * built.forward.rate_bps, rel=1e-6)
    assert paced(plan.emulated, 4.0).links[0].forward == plan.network.links[0].forward
