"""Plans → one Compose file for plain ``docker compose up``, a profile a scenario.

::

    tor-a ─ started ─▶ planner ─ healthy ─▶ tor-b, fab-a, wan1 …, p1, r1, md1 …, client

The first router is root and starts first: it opens ./runs for the others, who are not.

The client is one service in all profiles, because ``--exit-code-from`` names it: it has those
sysctls that all of them want, and the largest of their MTUs (its peers' TCP allows no more than
their own). Every other service and network of a profile that is not the first one bears the
profile's name before its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from testbed.compose.anchors import common
from testbed.compose.document import (
    Address,
    BridgeNetwork,
    Build,
    ComposeFile,
    Health,
    Ipam,
    Need,
    Pool,
    Service,
)
from testbed.contract.health import CHECK
from testbed.contract.network import Network, Node
from testbed.contract.role import NodeKind, Role
from testbed.contract.segment import Seat, Segment, first_of, segments
from testbed.errors import PlanError

RUNS = "/mnt/runs"
"""The folder of all runs, as containers see it."""
CLIENT, PLANNER = "client", "planner"
PROJECT = "pdd-testbed"
USER = "${TESTBED_USER:-10001:10001}"
_MIB = 2**20
_BUILD_ARGUMENTS = {"BASE": "python:3.11.14-slim-bookworm", "TORCH": "cpu", "TORCH_INDEX": ""}
_MTU = "com.docker.network.driver.mtu"
_OPTIONS = (
    ("com.docker.network.bridge.inhibit_ipv4", "true"),
    ("com.docker.network.bridge.enable_ip_masquerade", "false"),
    ("com.docker.network.bridge.gateway_mode_ipv4", "routed"),
)
"""No address on the host, so no route there; and engines from 28 on pass a packet on although its
address belongs to another of their networks."""


@dataclass(frozen=True, slots=True)
class Standalone:
    """One scenario of the file.

    Attributes:
        profile: under which it is chosen; empty: always on.
        scenario: what the planner plans: a shipped name, or an absolute path.
        network: settled, with addresses that begin with 10.
        layout: what the planner compares its own plan with.
    """

    profile: str
    scenario: str
    network: Network
    layout: str


def render_standalone(parts: tuple[Standalone, ...], first: int = 10) -> ComposeFile:
    """The Compose file of these scenarios.

    Args:
        first: first number of all addresses where TESTBED_NET is not set.

    Raises:
        PlanError: a network cannot be laid out, or the clients of two scenarios differ.
    """
    services: dict[str, Service] = {}
    networks: dict[str, BridgeNetwork] = {}
    for number, part in enumerate(parts):
        names = _Names(part, "" if number == 0 else f"{part.profile}-")
        laid_out = segments(part.network)
        for segment in laid_out:
            name, network = names.segment(segment.name), _network(segment, first)
            networks[name] = _wider(networks[name], network) if name in networks else network
        services[names.planner] = _planner(part, names, first)
        for node in part.network.nodes:
            service = _service(part, node, names, laid_out, first)
            name = names.node(node.name)
            services[name] = _both(services[name], service) if name in services else service
    if len(parts) > 1:
        services[CLIENT] = _optional(services[CLIENT])
    return ComposeFile(name=PROJECT, services=services, networks=networks)


class _Names:
    """Names of one scenario's services and networks."""

    def __init__(self, part: Standalone, prefix: str) -> None:
        self._prefix = prefix
        self._client = next(n.name for n in part.network.nodes if n.role is Role.CLIENT)
        self.planner = f"{prefix}{PLANNER}"
        self.opener = next(n.name for n in part.network.nodes if n.kind is NodeKind.ROUTER)

    def node(self, name: str) -> str:
        return CLIENT if name == self._client else f"{self._prefix}{name}"

    def segment(self, name: str) -> str:
        return name if name == f"{self._client}-a" else f"{self._prefix}{name}"


def _wider(one: BridgeNetwork, other: BridgeNetwork) -> BridgeNetwork:
    """The client's network in two scenarios: with the larger MTU."""
    wide, narrow = sorted((one, other), key=lambda network: -int(network.driver_opts[_MTU]))
    if narrow.model_copy(update={"driver_opts": wide.driver_opts}) != wide:
        raise _differ()
    return wide


def _both(one: Service, other: Service) -> Service:
    """The client of two scenarios."""
    alike = {
        "profiles": (*one.profiles, *other.profiles),
        "depends_on": {**one.depends_on, **other.depends_on},
        "sysctls": dict(one.sysctls.items() & other.sysctls.items()),
    }
    ordered = {name: value for name, value in one.sysctls.items() if name in alike["sysctls"]}
    both = one.model_copy(update={**alike, "sysctls": ordered})
    if other.model_copy(update={**alike, "sysctls": ordered}) != both:
        raise _differ()
    return both


def _differ() -> PlanError:
    return PlanError(
        "render the compose file", CLIENT, "the scenarios have it at different addresses",
        "render each scenario into a file of its own",
    )  # fmt: skip


def _optional(service: Service) -> Service:
    needs = {
        name: need.model_copy(update={"required": False})
        for name, need in service.depends_on.items()
    }
    return service.model_copy(update={"depends_on": needs})


def image_of(target: str, tag: str = "latest") -> str:
    """Name of an image; TESTBED_AGENT_IMAGE and TESTBED_ROUTER_IMAGE name others."""
    return f"${{TESTBED_{target.upper()}_IMAGE:-pdd-testbed/{target}:{tag}}}"


def _build(target: str) -> Build:
    return Build(
        context=".", dockerfile="agents/Dockerfile", target=target,
        args={name: f"${{{name}:-{value}}}" for name, value in _BUILD_ARGUMENTS.items()},
    )  # fmt: skip


def _planner(part: Standalone, names: _Names, first: int) -> Service:
    wishes = {"TESTBED_NET": str(first), "TESTBED_SEED": "", "TESTBED_SLOW": ""}
    folder, _, name = part.scenario.rpartition("/")
    return Service(
        image=image_of("agent"), build=_build("agent"),
        profiles=_profiles(part),
        command=(
            *_PROGRAM, "testbed.run.up.plan", RUNS, f"{_OWN}/{name}" if folder else name,
            part.layout,
        ),
        user=USER, network_mode="none",
        volumes=(
            *_VOLUMES,
            *((f"{folder}:{_OWN}:ro",) if folder else ()),
        ),
        environment={name: f"${{{name}:-{default}}}" for name, default in wishes.items()},
        mem_limit=1024 * _MIB, pids_limit=_PIDS, healthcheck=_HEALTH,
        stop_grace_period=_GRACE,
        depends_on={names.node(names.opener): Need(condition="service_started")},
    )  # fmt: skip


_OWN = "/mnt/own"
"""The folder of a scenario that is not shipped; its own topologies and profiles lie there, too."""
_VOLUMES = (f"./runs:{RUNS}",)
_PIDS = 128
_COMPUTE = (Role.PREFILL, Role.RELAY, Role.DECODE)
MODEL_LABEL = "org.pdd-testbed.model"
"""Label of services that run a model."""
_HEALTH = Health(test=CHECK, interval="2s", timeout="24h", start_period="5m", retries=1)
_GRACE = "30s"
"""A busy host needs a while to end all of them."""
_PROGRAM = ("python", "-m", "testbed.contract.health")


def _service(
    part: Standalone, node: Node, names: _Names, laid_out: tuple[Segment, ...], first: int
) -> Service:
    seats = {
        names.segment(segment.name): seat
        for segment in laid_out
        for seat in segment.seats
        if seat.node == node.name
    }
    agent = node.kind is NodeKind.AGENT
    client = names.node(node.name) == CLIENT
    router = node.kind is NodeKind.ROUTER
    opens = node.name == names.opener
    return Service(
        image=image_of("agent" if agent else "router"),
        build=_build("router") if router else None,
        pull_policy=None if router else "never",
        profiles=_profiles(part),
        command=(*_command(node, client), *(("opens",) if opens else ())),
        user=USER if agent else "0:0",
        cap_add=() if agent else ("NET_ADMIN", "NET_RAW"),
        sysctls=dict(node.sysctls),
        networks=_addresses(seats, first),
        volumes=_VOLUMES,
        mem_limit=(2048 if client else 1024 if agent else 256) * _MIB,
        pids_limit=_PIDS,
        depends_on={} if opens else {names.planner: Need(condition="service_healthy")},
        healthcheck=_HEALTH,
        stop_grace_period=_GRACE,
        labels={MODEL_LABEL: "yes"} if node.role in _COMPUTE else {},
    )


def _profiles(part: Standalone) -> tuple[str, ...]:
    return (part.profile,) if part.profile else ()


def _command(node: Node, client: bool) -> tuple[str, ...]:
    if client:
        return (*_PROGRAM, "testbed.run.up.lead", RUNS, node.name)
    if node.kind is NodeKind.AGENT:
        return (*_PROGRAM, "testbed_agents.contained", RUNS, node.name, "real")
    return (*_PROGRAM, "testbed.run.up.fabric", RUNS, node.name)


def _addresses(seats: Mapping[str, Seat], first: int) -> dict[str, Address]:
    return {
        name: Address(ipv4_address=_variable(seat.address, first)) for name, seat in seats.items()
    }


def _variable(address: str, first: int) -> str:
    """The address with its first number left to TESTBED_NET."""
    default = first if first_of(address) == 10 else first_of(address)
    return f"${{TESTBED_NET:-{default}}}.{address.partition('.')[2]}"


def _network(segment: Segment, first: int) -> BridgeNetwork:
    pool = Pool(subnet=_variable(segment.subnet, first), gateway=_variable(segment.gateway, first))
    return BridgeNetwork(
        driver_opts={**dict(_OPTIONS), _MTU: str(segment.mtu)},
        ipam=Ipam(config=(pool,)),
    )


def blocks(content: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """What agents, wires with routers, and networks have in common, for ``with_anchors``."""
    services, networks = content["services"], content["networks"]
    if not isinstance(services, Mapping) or not isinstance(networks, Mapping):
        return {}
    return {
        "agent": common([one for one in services.values() if one["user"] == USER]),
        "fabric": common([one for one in services.values() if one["user"] != USER]),
        "segment": common(list(networks.values())),
    }


def _gpu() -> dict[str, object]:
    return {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}


def render_gpu(file: ComposeFile) -> dict[str, object]:
    """What a second Compose file adds so that agents with a model each get a GPU."""
    services: dict[str, object] = {}
    for name, service in file.services.items():
        if service.user != USER:
            continue
        change: dict[str, object] = {"image": image_of("agent", "cuda")}
        if service.build is not None:
            change["build"] = {"args": {"TORCH": "cuda"}}
        if service.labels.get(MODEL_LABEL):
            change["deploy"] = {"resources": {"reservations": {"devices": [_gpu()]}}}
        services[name] = change
    return {"services": services}
