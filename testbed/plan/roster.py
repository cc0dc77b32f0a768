"""Who takes part: names, sites and addresses of agents, and what their legs carry."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.contract.link import LinkSpec
from testbed.contract.role import Role
from testbed.errors import PlanError
from testbed.plan.address import Subnet, access_subnet
from testbed.scenario.topology import MAX_NODES_PER_SITE
from testbed.scenario.value import Scenario

PREFIXES: dict[Role, str] = {
    Role.CLIENT: "c",
    Role.ROUTER: "rt",
    Role.PREFILL: "p",
    Role.RELAY: "r",
    Role.DECODE: "md",
}
ETHERNET_HEADER = 14
IP_AND_TCP_HEADERS = 20 + 20 + 12
"""IPv4, TCP and the timestamp option that Linux sends by default."""


@dataclass(frozen=True, slots=True)
class Member:
    """One agent and its access link."""

    name: str
    role: Role
    site: str
    link_class: str
    subnet: Subnet

    @property
    def address(self) -> str:
        """Address of the agent."""
        return self.subnet.second


@dataclass(frozen=True, slots=True)
class Capacity:
    """What payload can cross from prefill to decode.

    Attributes:
        legs: parallel links that carry it.
        leg_payload_bps: TCP payload rate of one, in bit/s.
    """

    legs: int
    leg_payload_bps: float


def roster(scenario: Scenario) -> tuple[Member, ...]:
    """All agents in build order: clients, prefill, relay, decode; numbered from 1.

    Raises:
        PlanError: a site has more agents than its addresses allow.
    """
    members: list[Member] = []
    used: dict[str, int] = {}
    for role, prefix in PREFIXES.items():
        placement = scenario.topology.roles.get(role)
        if placement is None:
            continue
        site = scenario.topology.sites.index(placement.site)
        for number in range(1, scenario.count(role) + 1):
            port = used.get(placement.site, 0) + 1
            used[placement.site] = port
            members.append(
                Member(
                    name=f"{prefix}{number}",
                    role=role,
                    site=placement.site,
                    link_class=placement.link,
                    subnet=access_subnet(site, port),
                )
            )
    for name, count in used.items():
        if count > MAX_NODES_PER_SITE:
            raise PlanError(
                "plan the network",
                f"site {name}",
                f"{count} agents are more than the {MAX_NODES_PER_SITE} that a site can address",
                "lower the topology's parameters",
            )
    return tuple(members)


def names_of(members: tuple[Member, ...], role: Role) -> tuple[str, ...]:
    """Names of all agents of one role."""
    return tuple(member.name for member in members if member.role is role)


def capacity(scenario: Scenario) -> Capacity:
    """What the legs between prefill and decode carry as payload.

    Where both share a site there are no legs: the narrower of their sides counts,
    one access link an instance.
    """
    roles = scenario.topology.roles
    ends = {roles[Role.PREFILL].site, roles[Role.DECODE].site}
    for trunk in scenario.topology.trunks:
        if set(trunk.between) == ends:
            legs = dict(scenario.parameters)[trunk.legs]
            return Capacity(legs, payload_bps(scenario.link(trunk.link), _mtu(scenario)))
    spec = scenario.link(roles[Role.PREFILL].link)
    legs = min(scenario.count(Role.PREFILL), scenario.count(Role.DECODE))
    return Capacity(legs, payload_bps(spec, _mtu(scenario)))


def payload_bps(spec: LinkSpec, mtu: int) -> float:
    """Payload rate of full frames of ``mtu``: netem counts the Ethernet header, no more."""
    return spec.rate_bps * (mtu - IP_AND_TCP_HEADERS) / (mtu + ETHERNET_HEADER)


def _mtu(scenario: Scenario) -> int:
    """TCP's frames fit the smallest MTU on their way."""
    return min(spec.mtu for _, spec in scenario.links)
