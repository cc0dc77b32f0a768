"""A plan as containers: the same network, nothing unshaped, nobody with more rights than needed."""

from __future__ import annotations

import io
import ipaddress
from functools import cache

import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML

from testbed.compose import Placement, compose_yaml, render_compose
from testbed.compose.document import Bind
from testbed.contract.network import Network
from testbed.contract.plan import Plan
from testbed.contract.role import NodeKind
from testbed.contract.segment import PLACEHOLDERS, seats_of, segments
from testbed.errors import PlanError
from testbed.plan import HostFacts
from testbed.run.prepare import prepare

pytestmark = pytest.mark.unit

SCENARIOS = ("hello", "pdd-hello", "pdd-many-to-one", "pdd-mesh", "idc-pd", "pdd-paper")
PLACEMENT = Placement(project="pdd", router_image="r:1", agent_image="a:1", run="/srv/run")


@cache
def plan_of(scenario: str) -> Plan:
    roomy = HostFacts(cores=2, memory_free_bytes=2**40, disk_free_bytes=2**40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("testbed.run.prepare.read_host_facts", lambda _: roomy)
        return prepare(scenario, lab="compose").plan


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_link_is_two_segments_and_no_segment_joins_its_ends(scenario: str) -> None:
    network = plan_of(scenario).network
    found = segments(network)
    assert len(found) == 2 * len(network.links)
    for link in network.links:
        sides = [s for s in found if s.name in (f"{link.name}-a", f"{link.name}-b")]
        for segment, end in zip(sides, (link.a, link.b), strict=True):
            assert {seat.node for seat in segment.seats} == {end.node, link.wire}
            assert [seat.device for seat in segment.seats] == [end.interface, end.wire_device]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_addresses_are_unique_and_fit_their_segments(scenario: str) -> None:
    network = plan_of(scenario).network
    subnets = [ipaddress.ip_network(s.subnet) for s in segments(network)]
    for index, one in enumerate(subnets):
        assert not any(one.overlaps(other) for other in subnets[index + 1 :])
    for segment, subnet in zip(segments(network), subnets, strict=True):
        taken = [segment.gateway, *(seat.address for seat in segment.seats)]
        assert len(set(taken)) == 3
        assert all(ipaddress.ip_address(one) in subnet.hosts() for one in taken)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_agents_keep_the_plans_address_and_lead_to_their_router(scenario: str) -> None:
    network = plan_of(scenario).network
    routes = {r.node: r.hops[0].via for r in network.routes if r.destination == "default"}
    for node in network.nodes:
        seats = seats_of(network, node.name)
        if node.kind is NodeKind.AGENT:
            (seat,) = seats
            assert seat.keeps
            assert f"{seat.address}/29" == node.interfaces[0].address
            (segment,) = [s for s in segments(network) if seat in s.seats]
            assert segment.gateway == routes[node.name]
        elif node.kind is NodeKind.ROUTER:
            assert all(ipaddress.ip_address(one.address) in PLACEHOLDERS for one in seats)
            assert {one.device for one in seats} == {i.name for i in node.interfaces}


def test_a_network_that_was_planned_for_mininet_is_refused() -> None:
    network = prepare("hello").plan.network
    wider = [
        node.model_copy(
            update={
                "interfaces": tuple(
                    i.model_copy(update={"address": "10.1.1.9/30"}) if i.address else i
                    for i in node.interfaces
                )
            }
        )
        for node in network.nodes
    ]
    broken = Network.model_validate({**network.model_dump(), "nodes": wider})
    with pytest.raises(PlanError, match="needs the router at"):
        segments(broken)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_only_wires_and_routers_have_rights(scenario: str) -> None:
    plan = plan_of(scenario)
    file = render_compose(plan, PLACEMENT)
    kinds = {node.name: node.kind for node in plan.network.nodes}
    assert file.services.keys() == kinds.keys()
    for name, service in file.services.items():
        assert service.cap_drop == ("ALL",)
        assert service.read_only
        assert "no-new-privileges:true" in service.security_opt
        assert service.mem_limit > 0
        assert service.pids_limit > 0
        assert [v.target for v in service.volumes if isinstance(v, Bind)] == ["/mnt/run"]
        assert len(service.volumes) == 1
        if kinds[name] is NodeKind.AGENT:
            assert service.cap_add == ()
            assert service.user.split(":")[0] != "0"
            assert len(service.networks) == 1
        else:
            assert service.cap_add == ("NET_ADMIN", "NET_RAW")


def test_agents_are_never_root() -> None:
    for who in ({"user": 0}, {"group": 0}):
        with pytest.raises(ValidationError):
            Placement.model_validate({**PLACEMENT.model_dump(), **who})


@pytest.mark.parametrize("version", [(1, 1), (1, 2)])
def test_yaml_of_either_version_reads_back_the_same(version: tuple[int, int]) -> None:
    file = render_compose(plan_of("pdd-hello"), PLACEMENT)
    text = compose_yaml(file, "one\ntwo")
    assert text.startswith("# one\n# two\n")
    yaml = YAML(typ="safe", pure=True)
    yaml.version = version
    read = yaml.load(io.StringIO(text))
    for name, service in file.services.items():
        assert read["services"][name]["user"] == service.user
        assert read["services"][name].get("sysctls", {}) == service.sysctls
        assert tuple(read["services"][name]["command"]) == service.command
    assert list(read["networks"]) == list(file.networks)
