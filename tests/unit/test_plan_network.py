"""The planned network: unique names and addresses, and a way from every agent to every other."""

from __future__ import annotations

import ipaddress
from collections import Counter
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.network import Network, NextHop
from testbed.contract.role import NodeKind, Role
from testbed.plan import roster
from testbed.plan.network import build_network
from testbed.scenario import Scenario, load_scenario

pytestmark = pytest.mark.unit


@cache
def network(prefill: int, relay: int, decode: int, legs: int, seed: int = 1) -> Network:
    scenario = scaled(prefill, relay, decode, legs)
    return build_network(scenario, roster(scenario), seed)


@cache
def scaled(prefill: int, relay: int, decode: int, legs: int) -> Scenario:
    return load_scenario(
        "hello",
        tuple(
            f"topology.parameters.{name}={value}"
            for name, value in (
                ("prefill", prefill), ("relay", relay), ("decode", decode), ("legs", legs)
            )
        ),
    )  # fmt: skip


sizes = st.tuples(st.integers(1, 64), st.integers(0, 64), st.integers(1, 64), st.integers(1, 16))


@settings(max_examples=15, deadline=None)
@given(sizes)
def test_names_and_addresses_are_unique_short_and_private(size: tuple[int, int, int, int]) -> None:
    built = network(*size)
    nodes = [node.name for node in built.nodes]
    interfaces = [interface for node in built.nodes for interface in node.interfaces]
    names = [interface.name for interface in interfaces]
    macs = [interface.mac for interface in interfaces]
    addresses = [i.address.partition("/")[0] for i in interfaces if i.address is not None]
    for found in (nodes, names, macs, addresses):
        assert Counter(found).most_common(1)[0][1] == 1
    assert max(map(len, names)) <= 15
    assert all(ipaddress.ip_address(address).is_private for address in addresses)
    assert all(int(mac[:2], 16) & 3 == 2 for mac in macs), "locally administered, unicast"


@settings(max_examples=10, deadline=None)
@given(sizes)
def test_every_agent_reaches_every_other_over_every_leg(size: tuple[int, int, int, int]) -> None:
    built = network(*size)
    agents = [node.name for node in built.nodes if node.kind is NodeKind.AGENT]
    ends = agents[:1] + agents[-1:]
    for start in ends:
        for goal in agents:
            if start != goal:
                arrivals = walk(built, start, address_of(built, goal))
                assert set(arrivals) == {goal}
    first, last = ends
    assert len(walk(built, first, address_of(built, last))) == size[3]


def address_of(built: Network, node: str) -> str:
    (found,) = [n for n in built.nodes if n.name == node]
    assert found.interfaces[0].address is not None
    return found.interfaces[0].address.partition("/")[0]


def walk(built: Network, node: str, target: str, hops: int = 0) -> list[str]:
    """Forward as a kernel would: connected networks first, then routes; every hop of each."""
    assert hops < 8, "a routing loop"
    by_address = {
        interface.address.partition("/")[0]: owner.name
        for owner in built.nodes
        for interface in owner.interfaces
        if interface.address is not None
    }
    if by_address.get(target) == node:
        return [node]
    address = ipaddress.ip_address(target)
    (here,) = [n for n in built.nodes if n.name == node]
    for interface in here.interfaces:
        if interface.address and address in ipaddress.ip_interface(interface.address).network:
            return [by_address[target]]
    ways: list[NextHop] = []
    for route in built.routes:
        if route.node == node:
            text = "0.0.0.0/0" if route.destination == "default" else route.destination
            if address in ipaddress.ip_network(text):
                ways.extend(route.hops)
    return [end for way in ways for end in walk(built, by_address[way.via], target, hops + 1)]


def test_links_neighbours_and_wires_agree() -> None:
    built = network(2, 1, 3, 2)
    nodes = {node.name: node for node in built.nodes}
    entries = {(n.node, n.interface): (n.address, n.mac) for n in built.neighbours}
    for link in built.links:
        wire = nodes[link.wire]
        assert wire.kind is NodeKind.WIRE
        owned = {interface.name for interface in wire.interfaces}
        assert {link.a.wire_device, link.b.wire_device, *link.inner} <= owned
        for here, there in ((link.a, link.b), (link.b, link.a)):
            (far,) = [i for i in nodes[there.node].interfaces if i.name == there.interface]
            assert far.address is not None
            assert entries[here.node, here.interface] == (far.address.partition("/")[0], far.mac)
    assert len(entries) == 2 * len(built.links)
    assert {link.wire for link in built.links} == {"fab-a", "fab-b", "wan1", "wan2"}


def test_each_direction_of_each_link_has_its_own_seed() -> None:
    built = network(2, 1, 3, 2)
    seeds = [spec.seed for link in built.links for spec in (link.forward, link.backward)]
    assert len(set(seeds)) == len(seeds)
    assert 0 not in seeds


def test_another_seed_changes_seeds_and_nothing_else() -> None:
    one, other = network(2, 1, 3, 2, seed=1), network(2, 1, 3, 2, seed=2)
    assert (one.nodes, one.routes, one.neighbours) == (other.nodes, other.routes, other.neighbours)
    for before, after in zip(one.links, other.links, strict=True):
        assert before.forward.seed != after.forward.seed
        plain = before.forward.model_copy(update={"seed": after.forward.seed})
        assert plain == after.forward


def test_routers_spread_connections_by_a_fixed_hash_of_the_five_tuple() -> None:
    for node in network(1, 0, 1, 2).nodes:
        settings_of = dict(node.sysctls)
        assert settings_of["net.ipv6.conf.all.disable_ipv6"] == "1", "no stray packets"
        if node.kind is NodeKind.ROUTER:
            assert settings_of["net.ipv4.ip_forward"] == "1"
            assert settings_of["net.ipv4.fib_multipath_hash_policy"] == "3"
            assert int(settings_of["net.ipv4.fib_multipath_hash_fields"]) == 0x37
            assert settings_of["net.ipv4.fib_multipath_hash_seed"] == "2"


def test_one_rack_needs_no_routes_between_routers() -> None:
    scenario = load_scenario("rdma-1gib", ("topology.parameters.decode=3",))
    built = build_network(scenario, roster(scenario), 1)
    assert {route.destination for route in built.routes} == {"default"}
    assert sum(node.role is Role.DECODE for node in built.nodes) == 3
    assert walk(built, "p1", address_of(built, "md3")) == ["md3"]
