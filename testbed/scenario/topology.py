"""Topology files: sites, who stands where, and which class each link has.

A site has one top-of-rack router; every agent hangs off its site's router by one
access link; trunks of one or more parallel *legs* join the routers of two sites::

    c1 ──client──┐                                   ┌──fabric── md1
    p1 ──fabric──┤ tor-a ══ wan (legs, multipath) ══ tor-b ──┤
    r1 ──fabric──┘                                   └──fabric── md2

A *group* of sites is a row of like ones, of which a parameter says how many there are.
Where a site may stand, a group may: then each of its sites has those agents, or those legs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from testbed.contract.record import Record
from testbed.contract.role import Role
from testbed.scenario.entry import Line, Name
from testbed.scenario.layout import Layout, Legs, Place

Site = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z]$")]
"""One letter, so that router and wire names stay short: ``tor-a``, ``fab-a``."""

MAX_NODES_PER_SITE = 254

GroupName = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z][a-z0-9-]{1,18}$")]
"""Two letters or more, so that no group is called like a site."""


class Parameter(Record):
    """A number that a scenario may set, within bounds."""

    default: Annotated[int, Field(strict=True, ge=0)]
    minimum: Annotated[int, Field(strict=True, ge=0)]
    maximum: Annotated[int, Field(strict=True, ge=1, le=10_000)]
    meaning: Line

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.minimum <= self.default <= self.maximum:
            raise ValueError("needs minimum <= default <= maximum")
        return self


class Group(Record):
    """Like sites in a row; the first ``count`` of them exist."""

    sites: tuple[Site, ...] = Field(min_length=1)
    count: Name
    """Name of the parameter that says how many."""


class Placement(Record):
    """Where agents of one role stand: site, how many, class of their access link."""

    site: Site | GroupName
    """A site, or a group: then ``count`` agents in each of its sites."""
    count: Name
    """Name of the parameter that says how many."""
    link: Name
    """Class of their access links."""


class Trunk(Record):
    """Parallel legs between the routers of two sites, or of every pair from two groups."""

    between: tuple[Site | GroupName, Site | GroupName]
    legs: Name
    """Name of the parameter that says how many."""
    link: Name
    """Class of the legs."""


class LinkClass(Record):
    """Links that are shaped alike."""

    profile: Name
    meaning: Line


class Topology(Record):
    """A file of ``topologies/``."""

    name: Name
    description: Line
    parameters: dict[Name, Parameter]
    sites: tuple[Site, ...] = Field(min_length=1, max_length=9)
    groups: dict[GroupName, Group] = Field(default_factory=dict)
    roles: dict[Role, Placement | tuple[Placement, ...]]
    trunks: tuple[Trunk, ...] = ()
    links: dict[Name, LinkClass]
    hash_seed: Annotated[int, Field(strict=True, ge=1, lt=2**32)]
    """``fib_multipath_hash_seed`` of the routers: which connection takes which leg."""

    @model_validator(mode="after")
    def _refers_to_itself(self) -> Self:
        wrong = [*self._double_sites(), *self._unknown_names()]
        wrong.extend(
            f"roles: {role.value} is missing"
            for role in (Role.CLIENT, Role.PREFILL, Role.DECODE)
            if role not in self.roles
        )
        if not wrong:
            wrong = list(self._unjoined())
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    def _double_sites(self) -> Iterator[str]:
        if len(set(self.sites)) != len(self.sites):
            yield "a site is listed twice"
        grouped = [site for group in self.groups.values() for site in group.sites]
        if len(set(grouped)) != len(grouped):
            yield "groups: a site is in two places of groups"

    def _unknown_names(self) -> Iterator[str]:
        uses = [
            *(
                (f"roles.{role.value}", place.count, place.link, (place.site,))
                for role in self.roles
                for place in self.placements(role)
            ),
            *((f"trunks.{i}", t.legs, t.link, t.between) for i, t in enumerate(self.trunks)),
        ]
        for where, parameter, link, sites in uses:
            if parameter not in self.parameters:
                yield f"{where}: no parameter {parameter!r}"
            if link not in self.links:
                yield f"{where}: no link class {link!r}"
            for site in sites:
                if site not in self.sites and site not in self.groups:
                    yield f"{where}: no site or group {site!r}"
        for name, group in self.groups.items():
            known = self.parameters.get(group.count)
            if known is None:
                yield f"groups.{name}: no parameter {group.count!r}"
            elif not 1 <= known.minimum <= known.maximum <= len(group.sites):
                yield f"groups.{name}: {group.count} must be 1 to {len(group.sites)}, its sites"
            for site in group.sites:
                if site not in self.sites:
                    yield f"groups.{name}: no site {site!r}"

    def _unjoined(self) -> Iterator[str]:
        most = {name: known.maximum for name, known in self.parameters.items()}
        pairs = [frozenset(legs.between) for legs in self.layout(most).legs]
        if len(set(pairs)) != len(pairs) or any(
            len(set(t.between)) != 2 and t.between[0] not in self.groups for t in self.trunks
        ):
            yield "trunks: two different sites each, and one trunk a pair (use legs)"
        for one, other in combinations(self.sites, 2):
            if frozenset((one, other)) not in pairs:
                yield (
                    f"trunks: sites {one} and {other} are not joined "
                    "(there is no transit between sites)"
                )

    def placements(self, role: Role) -> tuple[Placement, ...]:
        """Where agents of ``role`` stand, in order of the file."""
        found = self.roles.get(role, ())
        return (found,) if isinstance(found, Placement) else found

    def layout(self, values: dict[str, int]) -> Layout:
        """Sites, places and legs under the parameter ``values``."""
        absent = {
            site for group in self.groups.values() for site in group.sites[values[group.count] :]
        }
        places = tuple(
            Place(role, site, values[one.count], one.link)
            for role in Role
            for one in self.placements(role)
            for site in self._members(one.site, absent)
        )
        return Layout(
            tuple(site for site in self.sites if site not in absent),
            places,
            tuple(self._legs(values, absent)),
        )

    def _members(self, name: str, absent: set[str]) -> tuple[str, ...]:
        group = self.groups.get(name)
        sites = (name,) if group is None else group.sites
        return tuple(site for site in sites if site not in absent)

    def _legs(self, values: dict[str, int], absent: set[str]) -> Iterator[Legs]:
        for trunk in self.trunks:
            one, other = (self._members(name, absent) for name in trunk.between)
            pairs = combinations(one, 2) if one == other else product(one, other)
            for between in pairs:
                yield Legs(between, values[trunk.legs], trunk.link)

    def count(self, role: Role, values: dict[str, int]) -> int:
        """Agents of ``role`` under the parameter ``values``; 0 where it has no place."""
        return sum(place.count for place in self.layout(values).places if place.role is role)
