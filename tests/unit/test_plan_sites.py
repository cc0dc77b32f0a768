"""Topologies of several primary and decode sites: who stands where, who talks to whom."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.agent import Request
from testbed.contract.plan import Offered, Plan
from testbed.contract.role import Role
from testbed.errors import ScenarioError
from testbed.plan import HostFacts, RunPaths, capacity, make_plan
from testbed.plan.roster import path_payload_bps, roster
from testbed.scenario import Scenario, load_scenario
from testbed.scenario.topology import Topology

pytestmark = pytest.mark.unit

HOST = HostFacts(cores=2, memory_free_bytes=1 << 40, disk_free_bytes=1 << 40)
OFFERED = Offered(
    payload_bytes=1, legs=2, leg_payload_bps=1e9, load=0.1, byte_scale=1.0, raw_load=0.1
)


@cache
def scenario_of(name: str, *parameters: tuple[str, int]) -> Scenario:
    settings = (f"topology.parameters.{key}={value}" for key, value in parameters)
    return load_scenario(name, ("expect={}", *settings))


def plan_of(scenario: Scenario) -> Plan:
    request = Request(
        id=0, at_ns=0, input_tokens=4096, hit_tokens=2048, output_tokens=2, blocks=16,
        wire_bytes=10**7, prefill="p1", decode="md1",
    )  # fmt: skip
    paths = RunPaths(weights=None)
    return make_plan(
        scenario, (request,), OFFERED, 1, HOST, "mininet", "virtual", "guest", paths
    )  # fmt: skip


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 2))
def test_a_mesh_joins_every_primary_with_every_decode_site(
    primaries: int, remotes: int, legs: int, lines: int
) -> None:
    parameters = (("primaries", primaries), ("remotes", remotes), ("legs", legs), ("lines", lines))
    scenario = scenario_of("pdd-mesh", *parameters)
    layout, members = scenario.layout, roster(scenario)
    assert layout.sites == ("a", "b", "c", "d")[:primaries] + ("m", "n", "o", "p")[:remotes]
    for p in layout.sites[:primaries]:
        assert {m.role for m in members if m.site == p} >= {
            Role.CLIENT, Role.PREFILL, Role.RELAY
        }  # fmt: skip
        for d in layout.sites[primaries:]:
            joining = layout.joining(p, d)
            assert joining is not None
            assert (joining.count, joining.link) == (legs, "wan")
    links = [link for link in plan_of(scenario).network.links if link.kind == "wan"]
    assert len(links) == primaries * remotes * legs == capacity(scenario).legs
    assert [link.name for link in links] == [f"wan{n}" for n in range(1, len(links) + 1)]


@pytest.mark.parametrize("name", ["pdd-many-to-one", "pdd-mesh"])
def test_relay_stays_in_the_site_that_computed(name: str) -> None:
    plan = plan_of(scenario_of(name))
    sites = {node.name: node.site for node in plan.network.nodes}
    for agent in plan.agents:
        relays = {peer.name for peer in agent.peers if peer.role is Role.RELAY}
        if agent.role is Role.PREFILL:
            assert relays
            assert {sites[relay] for relay in relays} == {sites[agent.node]}
        if agent.role in (Role.ROUTER, Role.DECODE):
            assert relays == {"r1", "r2"}


def test_each_pair_of_sites_has_its_own_path() -> None:
    serving = plan_of(scenario_of("pdd-mesh", ("legs", 2))).agents[0].serving
    assert serving is not None
    names = [name for name, _ in serving.leg_payload_bps]
    assert names == ["a-m", "a-n", "b-m", "b-n"]
    assert {bps for _, bps in serving.leg_payload_bps} == {int(2 * 100e6 * 8948 / 9014)}
    assert serving.rtt_ns == 20_000_000


def test_a_local_and_a_remote_cluster_have_paths_of_their_own() -> None:
    scenario = scenario_of("prfaas")
    assert path_payload_bps(scenario, "b", "a") == pytest.approx(100e9 * 8948 / 9014)
    assert path_payload_bps(scenario, "a", "a") == pytest.approx(4 * 400e9 * 8948 / 9014)
    assert capacity(scenario).legs == 1
    sites = [member.site for member in roster(scenario) if member.role is Role.PREFILL]
    assert sites == ["a"] * 4 + ["b"] * 10


def test_local_prefill_may_have_hardware_of_its_own() -> None:
    scenario = load_scenario("prfaas-pdd", ("serving.hardware.near_prefill=chip-c",))
    hardware = {agent.node: agent.hardware.name for agent in plan_of(scenario).agents}
    assert [hardware[name] for name in ("p1", "p2", "p3")] == ["chip-c", "demo-cpu", "demo-cpu"]
    with pytest.raises(ScenarioError, match="unknown name 'chip-x'"):
        load_scenario("prfaas-pdd", ("serving.hardware.near_prefill=chip-x",))


def test_clients_share_the_requests_and_the_users() -> None:
    plan = plan_of(scenario_of("pdd-mesh", ("primaries", 3)))
    turns = [agent.turn for agent in plan.agents if agent.role is Role.CLIENT]
    assert turns == [(0, 3), (1, 3), (2, 3)]
    closed = load_scenario(
        "pdd-mesh", ("workload.arrivals={kind: closed, users: 3, requests: 9}",)
    )  # fmt: skip
    users = [agent.closed_loop for agent in plan_of(closed).agents if agent.role is Role.CLIENT]
    assert users == [2, 1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"groups": {"primary": {"sites": ["a", "z"], "count": "primaries"}}}, "no site 'z'"),
        ({"groups": {"primary": {"sites": ["a", "b"], "count": "primaries"}}}, "must be 1 to 2"),
        ({"groups": {"primary": {"sites": ["a", "b"], "count": "many"}}}, "no parameter 'many'"),
        ({"groups": {}}, "no site or group 'primary'"),
        ({"trunks": [{"between": ["primary", "m"], "legs": "legs", "link": "wan"}]},
         "sites a and b are not joined"),
        ({"trunks": [{"between": ["m", "m"], "legs": "legs", "link": "wan"}]}, "two different"),
    ],
)  # fmt: skip
def test_a_topology_that_contradicts_itself_is_refused(
    change: dict[str, object], reason: str
) -> None:
    good = scenario_of("pdd-many-to-one").topology.model_dump(mode="json")
    Topology.model_validate(good)
    with pytest.raises(ValueError, match=reason):
        Topology.model_validate({**good, **change})
