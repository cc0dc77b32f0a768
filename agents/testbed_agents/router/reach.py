"""Near and far: whether a P shares its site with an MD. Pure."""

from __future__ import annotations

from enum import StrEnum

from testbed_agents.router.view import ClusterView, InstanceView


class Reach(StrEnum):
    """Where a request may be prefilled."""

    ANY = "any"
    NEAR = "near"
    FAR = "far"


def prefills_within(view: ClusterView, reach: Reach) -> tuple[InstanceView, ...]:
    """Every P within reach that has a path to an MD; all of them where none is."""
    sources = {pair[0] for pair in view.pools}
    linked = tuple([one for one in view.prefills if one.name in sources])
    if reach is Reach.ANY:
        return linked
    sites = {one.site for one in view.decodes}
    wanted = tuple([one for one in linked if (one.site in sites) is (reach is Reach.NEAR)])
    return wanted or linked


def decodes_within(
    view: ClusterView, prefill: InstanceView, reach: Reach
) -> tuple[InstanceView, ...]:
    """MDs for a P: those of its own site when it was chosen for being near."""
    reachable = view.reachable(prefill)
    if reach is not Reach.NEAR:
        return reachable
    return tuple([one for one in reachable if one.site == prefill.site]) or reachable
