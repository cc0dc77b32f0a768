"""Containers on their own: the plan at other addresses, one file for several scenarios."""

from __future__ import annotations

import io
import ipaddress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from testbed.compose.anchors import common, with_anchors
from testbed.compose.document import plain, yaml_of
from testbed.compose.settle import settled, settled_network
from testbed.compose.standalone import CLIENT, Standalone, blocks, render_standalone
from testbed.contract.link import RandomLoss
from testbed.contract.plan import Plan
from testbed.contract.role import NodeKind
from testbed.contract.segment import segments
from testbed.errors import PlanError
from testbed.plan import HostFacts
from testbed.run.prepare import prepare
from testbed.run.up.fabric import OPENS
from testbed.run.up.file import compose_text
from testbed.run.up.plan import layout_digest

pytestmark = pytest.mark.unit
RUN = "/mnt/runs/hello/20260101T000000-s1"


@cache
def plan_of(scenario: str) -> Plan:
    roomy = HostFacts(cores=2, memory_free_bytes=2**40, disk_free_bytes=2**40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("testbed.run.prepare.read_host_facts", lambda _: roomy)
        return prepare(scenario, lab="compose", clock="real").plan


def part(profile: str, scenario: str) -> Standalone:
    network = plan_of(scenario).network
    return Standalone(profile, scenario, settled_network(network), layout_digest(network))


@settings(max_examples=20, deadline=None)
@given(first=st.integers(1, 223))
def test_every_address_moves_and_nothing_else_does(first: int) -> None:
    plan = plan_of("pdd-hello")
    moved = settled(plan, RUN, first)
    for one, other in zip(plan.agents, moved.agents, strict=True):
        assert other.address == f"{first}.{one.address.partition('.')[2]}"
        peers = [(peer.name, peer.address.partition(".")[2]) for peer in one.peers]
        assert [(p.name, p.address.partition(".")[2]) for p in other.peers] == peers
        assert {p.address.partition(".")[0] for p in other.peers} == {str(first)}
        assert other.model_copy(
            update={"address": one.address, "peers": one.peers, "events": one.events,
                    "workload": one.workload}
        ) == one  # fmt: skip
    for segment in segments(moved.network):
        assert segment.subnet.startswith(f"{first}.")
        ipaddress.ip_network(segment.subnet)
    assert layout_digest(moved.network) == layout_digest(plan.network)


def test_paths_lead_into_the_run_folder() -> None:
    for agent in settled(plan_of("hello"), RUN).agents:
        assert agent.events == f"{RUN}/events/{agent.node}.jsonl"
        assert agent.workload in (None, f"{RUN}/workload.jsonl")


def test_another_network_has_another_layout() -> None:
    found = {
        layout_digest(prepare("pdd-hello", words, lab="compose", clock="real").plan.network)
        for words in ((), ("topology.parameters.prefill=3",), ("topology.parameters.legs=1",))
    }
    assert len(found) == 3


def test_routers_ask_for_agents_and_know_each_other() -> None:
    network = settled_network(plan_of("pdd-hello").network)
    agents = {node.name for node in network.nodes if node.kind is NodeKind.AGENT}
    macs = {i.mac for node in network.nodes if node.name in agents for i in node.interfaces}
    assert network.neighbours
    assert not [n for n in network.neighbours if n.node in agents or n.mac in macs]


def test_agents_links_carry_superframes_and_the_others_what_was_planned() -> None:
    planned = {link.name: link for link in plan_of("hello").network.links}
    for link in settled_network(plan_of("hello").network).links:
        if link.kind == "wan":
            assert link == planned[link.name]
        else:
            assert {link.forward.superframe_bytes, link.backward.superframe_bytes} == {65_536}


def test_loss_on_an_agents_own_link_is_refused() -> None:
    network = plan_of("hello").network
    lossy = tuple(
        link.model_copy(
            update={"forward": link.forward.model_copy(update={"loss": RandomLoss(share=0.01)})}
        )
        if link.name == "p1"
        else link
        for link in network.links
    )
    with pytest.raises(PlanError, match="link p1"):
        settled_network(network.model_copy(update={"links": lossy}))


def test_one_scenario_needs_no_profile() -> None:
    file = render_standalone((part("", "hello"),))
    assert all(not service.profiles for service in file.services.values())
    assert file.services.keys() == {
        CLIENT, "planner", "tor-a", "tor-b", "fab-a", "fab-b", "p1", "md1", "wan1", "wan2",
    }  # fmt: skip


def test_profiles_share_the_client_and_nothing_else() -> None:
    file = render_standalone((part("one", "pdd-hello"), part("two", "hello")))
    shared = [name for name, one in file.services.items() if len(one.profiles) > 1]
    assert shared == [CLIENT]
    client = file.services[CLIENT]
    assert {need.required for need in client.depends_on.values()} == {False}
    assert set(client.networks) == {"c1-a"}
    for name, one in file.services.items():
        assert name == CLIENT or name.startswith("two-") == (one.profiles == ("two",))


def test_everybody_waits_for_the_planner_of_its_profile() -> None:
    file = render_standalone((part("one", "pdd-hello"), part("two", "hello")))
    for name, one in file.services.items():
        conditions = [need.condition for need in one.depends_on.values()]
        if name.endswith("planner"):
            assert conditions == ["service_started"]
        elif name.endswith("tor-a"):
            assert conditions == []
            assert one.command[-1] == OPENS
        else:
            assert conditions == ["service_healthy"] * len(one.profiles)


def test_the_default_first_number_can_be_chosen() -> None:
    file = render_standalone((part("", "hello"),), first=198)
    (address,) = file.services["p1"].networks.values()
    assert address.ipv4_address == "${TESTBED_NET:-198}.1.2.2"


@pytest.mark.parametrize("names", [("pdd-hello", "cdc-pd", "idc-pd", "hello"), ("pdd-mesh",)])
def test_anchors_change_nothing(names: tuple[str, ...]) -> None:
    file = render_standalone(tuple(part(name, name) for name in names))
    content = plain(file)
    text = yaml_of(with_anchors(content, blocks(content)), "heading")
    read = YAML(typ="safe", pure=True).load(io.StringIO(text))
    assert {key: value for key, value in read.items() if not key.startswith("x-")} == content
    assert len(text) < 0.6 * len(yaml_of(content, "heading"))


def test_what_entries_have_in_common() -> None:
    entries = [{"a": 1, "b": None, "c": 3}, {"a": 1, "c": 4}, {"c": 3, "a": 1, "b": None}]
    assert common(entries) == {"a": 1}


def test_faults_need_an_orchestrator(tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text(
        'extends: hello\nname: faults\ndescription: "test"\n'
        "faults:\n  - {kind: down, link: wan1, at: 1 s}\n"
    )
    with pytest.raises(PlanError, match="nobody who could do") as caught:
        compose_text(str(path))
    assert caught.value.subject == f"{path}:5"
