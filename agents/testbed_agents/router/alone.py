"""The last resort when no MD lives: P and an RLD beside it give the whole answer. Pure."""

from __future__ import annotations

from testbed_agents.router.decide import Route
from testbed_agents.router.instance import least
from testbed_agents.router.pipeline import Pipeline, PipelineChoice
from testbed_agents.router.reach import Reach
from testbed_agents.router.view import ClusterView, RequestFacts


def without_main(request: RequestFacts, view: ClusterView) -> Route | None:
    """P-RLD over the least loaded RLD that has room; None where an MD lives or none has."""
    if view.decodes:
        return None
    sites = {one.site for one in view.prefills}
    relays = sorted(
        (one for one in view.relays if one.site in sites and not one.full),
        key=lambda one: one.name,
    )
    if not relays:
        return None
    relay = least(request, relays)
    beside = sorted(
        (one for one in view.prefills if one.site == relay.site), key=lambda one: one.name
    )
    choice = PipelineChoice(Pipeline.P_RLD, "main-missing", "no MD lives")
    return Route(
        request.req, least(request, beside).name, relay.name, None, choice, Reach.ANY,
        "least-loaded", "main-missing",
    )  # fmt: skip
