"""Faults of packets and connections: from what authors write to addresses, ports and gates."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.contract.fault import LinkFault, PlannedFault, ResetFault, Span, TrafficFault
from testbed.contract.network import Network
from testbed.contract.scale import FULL, Scale, paced
from testbed.contract.sieve import Flows, Hold, Sieve
from testbed.errors import PlanError, ScenarioError
from testbed.lab.container.fabric import without_gates
from testbed.plan.faults import plan_faults
from testbed.plan.network import build_network
from testbed.plan.packets import with_gates
from testbed.plan.roster import roster
from testbed.scenario import load_scenario
from tests.unit.test_scenario_injection import MS, S, written

pytestmark = pytest.mark.unit
FRAMES = ("links.wan.segmentation=frame",)


def planned(
    path: str, scale: Scale = FULL, seed: int = 1
) -> tuple[Network, tuple[PlannedFault, ...]]:
    scenario = load_scenario(path, FRAMES)
    network = paced(build_network(scenario, roster(scenario), seed, "mininet"), scale.slow)
    return network, plan_faults(scenario, network, seed, scale, "mininet")


def sieve_of(fault: PlannedFault) -> Sieve:
    assert isinstance(fault, LinkFault)
    assert isinstance(fault.effect, Sieve)
    return fault.effect


def test_agents_and_words_become_addresses_and_ports(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "{kind: blackhole, link: wan, between: [p1, md1], port: data, direction: forward, at: 1 s}",
        "{kind: syn-loss, link: wan1, share: 25 %, port: 443, at: 1 s}",
        "{kind: mtu, link: wan1, above: 1400 B, at: 1 s}",
        "{kind: mark, link: wan1, share: 10 %, port: control, at: 1 s}",
    )
    network, faults = planned(path)
    hole, opening, mtu, mark = map(sieve_of, faults)
    addresses = {
        node.name: (node.interfaces[0].address or "").partition("/")[0] for node in network.nodes
    }
    assert hole.flows == Flows(between=(addresses["p1"], addresses["md1"]), port=7001)
    assert (hole.share, hole.above, hole.marks) == (1.0, 0, False)
    assert (opening.share, opening.flows) == (0.25, Flows(port=443))
    assert (mtu.above, mtu.flows) == (1400, Flows())
    assert (mark.marks, mark.flows.port) == (True, 7000)
    assert [one.number for one in (hole, opening, mtu, mark)] == [0, 1, 2, 3]
    assert opening.seed != mark.seed
    assert sieve_of(planned(path, seed=2)[1][1]).seed != opening.seed


def test_a_hold_gives_its_links_a_gate_and_goes_in_slow_motion(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "{kind: hold, link: p1, stop: 100 us, each: 1 ms, at: 1 s, duration: 1 s}",
        "{kind: hold, link: p1, direction: forward, stop: 300 us, each: 1 ms, at: 2 s}",
    )
    network, faults = planned(path, Scale(size=0.01, slow=8))
    first = faults[0]
    assert isinstance(first, LinkFault)
    assert first.effect == Hold(stop_ns=800_000, each_ns=8 * MS)
    built = {link.name: link for link in with_gates(network, faults).links}
    assert (built["p1"].forward.gate_ns, built["p1"].backward.gate_ns) == (2_400_000, 800_000)
    assert built["md1"] == next(link for link in network.links if link.name == "md1")
    assert with_gates(network, ()) is network
    assert without_gates(built["p1"]) == next(one for one in network.links if one.name == "p1")


def test_resets_are_instants(tmp_path: Path) -> None:
    path = written(
        tmp_path, "{kind: reset, node: p1, peer: md1, port: data, at: 1 s, every: 1 s, times: 2}"
    )
    (fault,) = planned(path)[1]
    assert isinstance(fault, ResetFault)
    assert fault.spans == (
        Span(begin_ns=S, end_ns=S + 1), Span(begin_ns=2 * S, end_ns=2 * S + 1),
    )  # fmt: skip
    assert (fault.peer, fault.port) == ("10.2.1.2", 7001)


def test_no_two_streams_share_a_port(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "{kind: traffic, node: [p1, tor-a], to: md1, flows: 3, at: 1 s, duration: 1 s}",
        "{kind: traffic, node: tor-a, to: tor-b, link: wan2, at: 1 s, "
        "burst: {on: 1 ms, off: 2 ms}}",
    )
    _, faults = planned(path, Scale(slow=2))
    incast, burst = faults
    assert isinstance(incast, TrafficFault)
    assert isinstance(burst, TrafficFault)
    assert (incast.on_ns, burst.on_ns, burst.off_ns) == (0, 2 * MS, 4 * MS)
    assert burst.port == incast.port + 2
    assert burst.source_port == incast.source_port + 6
    assert burst.to_address.startswith("10.100.2.")
    assert incast.source_addresses[0] == "10.1.2.2"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("{kind: syn-loss, link: wan1, share: 0 %, at: 1 s}", "above 0 %"),
        ("{kind: blackhole, link: wan1, between: [p1, p1], at: 1 s}", "two agents"),
        ("{kind: blackhole, link: wan1, port: dta, at: 1 s}", "port"),
        ("{kind: blackhole, link: wan1, port: 0, at: 1 s}", "port"),
        ("{kind: mtu, link: wan1, above: 60 B, at: 1 s}", "at least 68 B"),
        ("{kind: hold, link: p1, stop: 20 ms, each: 1 s, at: 1 s}", "10 us to 10 ms"),
        ("{kind: hold, link: p1, stop: 1 ms, each: 1 ms, at: 1 s}", "longer than stop"),
        ("{kind: reset, node: p1, at: 1 s, duration: 1 s}", "leave duration out"),
        ("{kind: reset, node: p1, at: 1 s, every: 0 s, times: 2}", "longer than 1 ns"),
        ("{kind: traffic, node: p1, to: md1, flows: 65, at: 1 s}", "flows"),
        ("{kind: traffic, node: p1, to: md1, burst: {on: 0 s, off: 1 s}, at: 1 s}", "on and off"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_line(
    tmp_path: Path, fault: str, reason: str
) -> None:
    path = written(tmp_path, fault)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert any(
        found.startswith(f"{path}:5: faults.0") and reason in found for found in caught.value.faults
    ), caught.value.faults


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("{kind: blackhole, link: wan, between: [p1, tor-a], at: 1 s}", "no agent 'tor-a'"),
        ("{kind: mtu, link: wan1, above: 9000 B, at: 1 s}", "no IP packet is larger"),
        ("{kind: mtu, link: p1, above: 1400 B, at: 2 s}", "superframes"),
        ("{kind: mark, link: p1, share: 1 %, at: 2 s}", "superframes"),
        ("{kind: reorder, link: p1, share: 1 %, at: 2 s}", "superframes"),
        ("{kind: reset, node: tor-a, at: 1 s}", "no agent 'tor-a'"),
        ("{kind: traffic, node: md1, to: md1, at: 1 s}", "cannot send to itself"),
        ("{kind: traffic, node: p1, to: wan1, at: 1 s}", "no node 'wan1' with an address"),
        ("{kind: traffic, node: p1, to: md1, link: wan1, at: 1 s}", "on link 'wan1'"),
        ("{kind: hold, link: p1, stop: 1 ms, each: 9 ms, at: 2 s}", "two holds would act at once"),
    ],
)
def test_what_the_network_cannot_do_is_refused_with_its_line(
    tmp_path: Path, fault: str, reason: str
) -> None:
    good = "{kind: hold, link: p1, stop: 1 ms, each: 8 ms, at: 1 s, duration: 2 s, name: first}"
    path = written(tmp_path, good, fault)
    with pytest.raises(PlanError) as caught:
        planned(path)
    assert caught.value.subject == f"{path}:6"
    assert reason in f"{caught.value.cause} {caught.value.remedy}"


def test_a_plan_without_such_faults_is_the_one_it_was(tmp_path: Path) -> None:
    network, _ = planned(written(tmp_path, "{kind: down, link: wan1, at: 1 s, duration: 1 s}"))
    text = network.model_dump_json()
    assert not [word for word in ('reorder":0', "sieves", "gate_ns", "hold") if word in text]
