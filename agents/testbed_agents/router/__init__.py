"""Which pipeline and which instances serve a request.

``view`` is what is known, ``decide`` the whole decision, ``pipeline`` and ``instance``
the pluggable rules. This room is pure: no I/O, no clock, no socket, no model.
"""

from testbed_agents.router.decide import Decider, Route
from testbed_agents.router.pipeline import Pipeline, PipelineChoice
from testbed_agents.router.view import (
    ClusterView,
    InstanceView,
    LegView,
    PoolView,
    RequestFacts,
)

__all__ = [
    "ClusterView", "Decider", "InstanceView", "LegView", "Pipeline", "PipelineChoice",
    "PoolView", "RequestFacts", "Route",
]  # fmt: skip
