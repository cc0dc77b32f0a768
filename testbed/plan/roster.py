"""Who takes part: names, sites and addresses of agents, and what their legs carry."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.contract.link import LinkSpec
from testbed.contract.role import Role
from testbed.errors import PlanError
from testbed.plan.address import Subnet, access_subnet
from testbed.scenario.layout import Legs
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
    layout = scenario.layout
    for role, prefix in PREFIXES.items():
        seats = [place for place in layout.where(role) for _ in range(place.count)]
        for number, place in enumerate(seats, 1):
            port = used.get(place.site, 0) + 1
            used[place.site] = port
            members.append(
                Member(
                    name=f"{prefix}{number}",
                    role=role,
                    site=place.site,
                    link_class=place.link,
                    subnet=access_subnet(layout.sites.index(place.site), port),
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
    """What the legs between prefill and decode carry as payload, of all pairs of sites.

    Where legs of several classes join such sites, their mean counts. Where both roles
    share all their sites there are no legs: the narrower of their sides counts, one
    access link an instance.
    """
    layout = scenario.layout
    sites = [{place.site for place in layout.where(role)} for role in (Role.PREFILL, Role.DECODE)]
    pairs = {frozenset((one, other)) for one in sites[0] for other in sites[1] if one != other}
    joining = [legs for legs in layout.legs if frozenset(legs.between) in pairs]
    count = sum(legs.count for legs in joining)
    if count:
        total = sum(legs.count * leg_payload_bps(scenario, legs) for legs in joining)
        return Capacity(count, total / count)
    spec = scenario.link(layout.where(Role.PREFILL)[0].link)
    count = min(scenario.count(Role.PREFILL), scenario.count(Role.DECODE))
    return Capacity(count, payload_bps(spec, _mtu(scenario)))


def path_payload_bps(scenario: Scenario, one: str, other: str) -> float:
    """Payload rate from a P at site ``one`` to the MDs at site ``other``, all legs together.

    Within a site the narrower of both sides counts, one access link an instance.
    """
    layout = scenario.layout
    legs = layout.joining(one, other)
    if legs is not None:
        return legs.count * leg_payload_bps(scenario, legs)
    prefills = [place for place in layout.where(Role.PREFILL) if place.site == one]
    decodes = [place for place in layout.where(Role.DECODE) if place.site == other]
    count = min(sum(place.count for place in places) for places in (prefills, decodes))
    return count * payload_bps(scenario.link(prefills[0].link), _mtu(scenario))


def leg_payload_bps(scenario: Scenario, legs: Legs) -> float:
    """Payload rate of one leg."""
    return payload_bps(scenario.link(legs.link), _mtu(scenario))


def payload_bps(spec: LinkSpec, mtu: int) -> float:
    """Payload rate of full frames of ``mtu``: netem counts the Ethernet header, no more."""
    return spec.rate_bps * (mtu - IP_AND_TCP_HEADERS) / (mtu + ETHERNET_HEADER)


def _mtu(scenario: Scenario) -> int:
    """TCP's frames fit the smallest MTU on their way."""
    return min(spec.mtu for _, spec in scenario.links)
