"""Topology files: sites, who stands where, and which class each link has.

A site has one top-of-rack router; every agent hangs off its site's router by one
access link; trunks of one or more parallel *legs* join the routers of two sites::

    c1 ──client──┐                                   ┌──fabric── md1
    p1 ──fabric──┤ tor-a ══ wan (legs, multipath) ══ tor-b ──┤
    r1 ──fabric──┘                                   └──fabric── md2
"""

from __future__ import annotations

from itertools import combinations
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from testbed.contract.record import Record
from testbed.contract.role import Role
from testbed.scenario.entry import Line, Name

Site = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z]$")]
"""One letter, so that router and wire names stay short: ``tor-a``, ``fab-a``."""

MAX_NODES_PER_SITE = 254


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


class Placement(Record):
    """Where agents of one role stand: site, how many, class of their access link."""

    site: Site
    count: Name
    """Name of the parameter that says how many."""
    link: Name
    """Class of their access links."""


class Trunk(Record):
    """Parallel legs between the routers of two sites."""

    between: tuple[Site, Site]
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
    sites: tuple[Site, ...] = Field(min_length=1, max_length=8)
    roles: dict[Role, Placement]
    trunks: tuple[Trunk, ...] = ()
    links: dict[Name, LinkClass]
    hash_seed: Annotated[int, Field(strict=True, ge=1, lt=2**32)]
    """``fib_multipath_hash_seed`` of the routers: which connection takes which leg."""

    @model_validator(mode="after")
    def _refers_to_itself(self) -> Self:
        wrong: list[str] = []
        if len(set(self.sites)) != len(self.sites):
            wrong.append("a site is listed twice")
        uses = [
            *(
                (f"roles.{role.value}", p.count, p.link, (p.site,))
                for role, p in self.roles.items()
            ),
            *((f"trunks.{i}", t.legs, t.link, t.between) for i, t in enumerate(self.trunks)),
        ]
        for where, parameter, link, sites in uses:
            if parameter not in self.parameters:
                wrong.append(f"{where}: no parameter {parameter!r}")
            if link not in self.links:
                wrong.append(f"{where}: no link class {link!r}")
            wrong.extend(f"{where}: no site {site!r}" for site in sites if site not in self.sites)
        for role in (Role.CLIENT, Role.PREFILL, Role.DECODE):
            if role not in self.roles:
                wrong.append(f"roles: {role.value} is missing")
        pairs = [frozenset(trunk.between) for trunk in self.trunks]
        if len(set(pairs)) != len(pairs) or any(len(pair) != 2 for pair in pairs):
            wrong.append("trunks: two different sites each, and one trunk a pair (use legs)")
        joined = set(pairs)
        wrong.extend(
            f"trunks: sites {one} and {other} are not joined (there is no transit between sites)"
            for one, other in combinations(self.sites, 2)
            if frozenset((one, other)) not in joined
        )
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    def count(self, role: Role, values: dict[str, int]) -> int:
        """Agents of ``role`` under the parameter ``values``; 0 where it has no place."""
        placement = self.roles.get(role)
        return 0 if placement is None else values[placement.count]
