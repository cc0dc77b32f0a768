"""A scenario's topology becomes nodes, wires, addresses and routes.

::

    p1 ─p1-eth0──p1-a [fab-a: p1-x═p1-y] p1-b──tor-a-p1─ tor-a ─…─ [wan1] ─…─ tor-b

Every device name is unique in the whole network, so that it may be made anywhere
and moved. One wire namespace holds all access links of a site, and one each leg.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from testbed.contract.link import LinkSpec
from testbed.contract.network import (
    INTERFACE_NAME_MAX,
    End,
    Interface,
    Link,
    Neighbour,
    Network,
    NextHop,
    Node,
    Route,
)
from testbed.contract.role import NodeKind, Role
from testbed.errors import PlanError
from testbed.plan.address import (
    MacCounter,
    Subnet,
    docker_mac,
    leg_subnet,
    site_network,
    with_prefix,
)
from testbed.plan.derive import derived_seed
from testbed.plan.roster import Member
from testbed.plan.sysctl import QUIET, agent_sysctls, router_sysctls
from testbed.scenario.layout import Legs
from testbed.scenario.value import Scenario


def build_network(
    scenario: Scenario, members: tuple[Member, ...], seed: int, lab: str = "mininet"
) -> Network:
    """The whole network of a plan; pure, the same for the same arguments.

    Raises:
        PlanError: a name does not fit the kernel's 15 characters.
    """
    draft = _Draft(scenario, seed, lab)
    layout = scenario.layout
    for site in layout.sites:
        draft.router(site)
        draft.wire(access_wire(site), site)
    for member in members:
        draft.access(member)
    for index, legs in enumerate(layout.legs):
        draft.trunk(index, legs)
    return draft.finish()


def router_name(site: str) -> str:
    """The top-of-rack of a site."""
    return f"tor-{site}"


def access_wire(site: str) -> str:
    """The namespace that shapes all access links of a site."""
    return f"fab-{site}"


@dataclass(slots=True)
class _Seat:
    """A node while it is being built."""

    kind: NodeKind
    site: str
    role: Role | None
    sysctls: tuple[tuple[str, str], ...]
    interfaces: list[Interface] = field(default_factory=list)


class _Draft:
    """Collects nodes and links in build order."""

    def __init__(self, scenario: Scenario, seed: int, lab: str) -> None:
        self._scenario = scenario
        self._seed = seed
        self._lab = lab
        self._macs = MacCounter()
        self._seats: dict[str, _Seat] = {}
        self._links: list[Link] = []
        self._routes: list[Route] = []
        self._neighbours: list[Neighbour] = []
        self._legs: Counter[str] = Counter()

    def router(self, site: str) -> None:
        sysctls = router_sysctls(self._scenario.topology.hash_seed)
        self._seats[router_name(site)] = _Seat(NodeKind.ROUTER, site, None, sysctls)

    def wire(self, name: str, site: str) -> None:
        self._seats[name] = _Seat(NodeKind.WIRE, site, None, QUIET)

    def access(self, member: Member) -> None:
        sysctls = agent_sysctls(self._scenario.tcp, self._scenario.pool)
        self._seats[member.name] = _Seat(NodeKind.AGENT, member.site, member.role, sysctls)
        router = router_name(member.site)
        self._link(
            name=member.name,
            kind=member.link_class,
            wire=access_wire(member.site),
            a=(member.name, f"{member.name}-eth0", member.subnet.second),
            b=(router, f"{router}-{member.name}", member.subnet.first),
        )
        gateway = NextHop(via=member.subnet.first, interface=f"{member.name}-eth0")
        self._routes.append(Route(node=member.name, destination="default", hops=(gateway,)))

    def trunk(self, index: int, trunk: Legs) -> None:
        one, other = trunk.between
        sites = self._scenario.layout.sites
        hops: dict[str, list[NextHop]] = {one: [], other: []}
        for leg in range(1, trunk.count + 1):
            self._legs[trunk.link] += 1
            name = f"{trunk.link}{self._legs[trunk.link]}"
            subnet = leg_subnet(index, leg)
            ends = self._leg_ends(name, one, other, subnet)
            self.wire(name, one)
            self._link(name=name, kind=trunk.link, wire=name, a=ends[0], b=ends[1])
            hops[one].append(NextHop(via=subnet.second, interface=ends[0][1]))
            hops[other].append(NextHop(via=subnet.first, interface=ends[1][1]))
        for here, there in ((one, other), (other, one)):
            self._routes.append(
                Route(
                    node=router_name(here),
                    destination=site_network(sites.index(there)),
                    hops=tuple(hops[here]),
                )
            )

    def _leg_ends(
        self, name: str, one: str, other: str, subnet: Subnet
    ) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
        a, b = router_name(one), router_name(other)
        return (a, f"{a}-{name}", subnet.first), (b, f"{b}-{name}", subnet.second)

    def _link(
        self, name: str, kind: str, wire: str, a: tuple[str, str, str], b: tuple[str, str, str]
    ) -> None:
        """Add a link; each end is (node, interface, address)."""
        macs = {end[1]: self._add(end[0], end[1], with_prefix(end[2], self._lab)) for end in (a, b)}
        outer_a, outer_b, inner_x, inner_y = (f"{name}-{letter}" for letter in "abxy")
        for device in (outer_a, inner_x, inner_y, outer_b):
            self._add(wire, device, None)
        spec = self._scenario.link(kind)
        self._links.append(
            Link(
                name=name,
                kind=kind,
                wire=wire,
                a=End(node=a[0], interface=a[1], wire_device=outer_a),
                b=End(node=b[0], interface=b[1], wire_device=outer_b),
                inner=(inner_x, inner_y),
                forward=self._seeded(spec, name, "forward"),
                backward=self._seeded(spec, name, "backward"),
            )
        )
        for here, there in ((a, b), (b, a)):
            self._neighbours.append(
                Neighbour(node=here[0], interface=here[1], address=there[2], mac=macs[there[1]])
            )

    def _add(self, node: str, name: str, address: str | None) -> str:
        if len(name) > INTERFACE_NAME_MAX:
            raise PlanError(
                "plan the network",
                name,
                f"an interface name holds {INTERFACE_NAME_MAX} characters",
                "shorten the names of sites and link classes in the topology",
            )
        mac = self._macs.take()
        if self._lab == "compose" and address and self._seats[node].kind is NodeKind.AGENT:
            mac = docker_mac(address.partition("/")[0])
        self._seats[node].interfaces.append(Interface(name=name, mac=mac, address=address))
        return mac

    def _seeded(self, spec: LinkSpec, link: str, direction: str) -> LinkSpec:
        return spec.model_copy(update={"seed": derived_seed(self._seed, "link", link, direction)})

    def finish(self) -> Network:
        nodes = tuple(
            Node(
                name=name,
                kind=seat.kind,
                site=seat.site,
                role=seat.role,
                interfaces=tuple(seat.interfaces),
                sysctls=seat.sysctls,
            )
            for name, seat in self._seats.items()
        )
        return Network(
            nodes=nodes,
            links=tuple(self._links),
            routes=tuple(self._routes),
            neighbours=tuple(self._neighbours),
        )
