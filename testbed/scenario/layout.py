"""A topology with its parameters filled in: which sites there are, who stands where."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.contract.role import Role


@dataclass(frozen=True, slots=True)
class Place:
    """``count`` agents of one role at one site."""

    role: Role
    site: str
    count: int
    link: str
    """Class of their access links."""


@dataclass(frozen=True, slots=True)
class Legs:
    """``count`` parallel legs between two sites; each pair of sites has at most one of these."""

    between: tuple[str, str]
    count: int
    link: str
    """Class of the legs."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Sites in order of their addresses; places by role, then site."""

    sites: tuple[str, ...]
    places: tuple[Place, ...]
    legs: tuple[Legs, ...]

    def where(self, role: Role) -> tuple[Place, ...]:
        """Places with at least one agent of ``role``."""
        return tuple(place for place in self.places if place.role is role and place.count)

    def joining(self, one: str, other: str) -> Legs | None:
        """The legs between two sites; None within a site, or where there are none."""
        for legs in self.legs:
            if {one, other} == set(legs.between):
                return legs
        return None
