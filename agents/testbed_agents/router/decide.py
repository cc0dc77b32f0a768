"""One routing decision: where to prefill, which P, which MD, which RLD, which pipeline."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.contract.router import RouterConfig
from testbed.errors import AgentError
from testbed_agents.router.instance import instance_policy
from testbed_agents.router.pipeline import Candidates, Pipeline, PipelineChoice, pipeline_policy
from testbed_agents.router.reach import Reach, decodes_within, prefills_within
from testbed_agents.router.view import ClusterView, RequestFacts


@dataclass(frozen=True, slots=True)
class Route:
    """What was decided. ``relay`` is None in P-MD, ``decode`` in P-RLD."""

    req: int
    prefill: str
    relay: str | None
    decode: str | None
    choice: PipelineChoice
    reach: Reach
    prefill_reason: str
    decode_reason: str


class Decider:
    """All policies of one router. Deterministic: same requests and pictures, same routes."""

    def __init__(self, config: RouterConfig) -> None:
        self.pipeline = pipeline_policy(config.pipeline)
        self._prefill = instance_policy(config.prefill)
        self._relay = instance_policy(config.relay)
        self._decode = instance_policy(config.decode)

    def decide(self, request: RequestFacts, view: ClusterView) -> Route:
        """The route of a request.

        Raises:
            AgentError: no P has a path to an MD.
        """
        reach = self.pipeline.reach(request, view)
        prefills = prefills_within(view, reach)
        if not prefills:
            raise AgentError(
                "route a request",
                str(request.req),
                "no prefill instance has a path to a decode one",
            )
        prefill = self._prefill.choose(request, prefills)
        decode = self._decode.choose(request, decodes_within(view, prefill.instance, reach))
        site = prefill.instance.site
        beside = [one for one in view.relays if one.site == site]
        relay = self._relay.choose(request, beside).instance if beside else None
        candidates = Candidates(prefill.instance, decode.instance, relay)
        choice = self.pipeline.choose(request, candidates, view)
        pipeline = choice.pipeline
        relayed = relay is not None and pipeline is not Pipeline.P_MD
        return Route(
            request.req, prefill.instance.name,
            relay.name if relayed and relay is not None else None,
            None if pipeline is Pipeline.P_RLD else decode.instance.name,
            choice, reach, prefill.reason, decode.reason,
        )  # fmt: skip
