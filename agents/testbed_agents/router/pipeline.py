"""Which stages serve a request: P-MD, P-RLD-MD, or (an ablation) P-RLD.

A policy is asked twice: first where to prefill, then, once the instances are known,
which pipeline. An RLD that is missing or full never delays a request: it goes P-MD.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, assert_never

from testbed.contract.router import (
    Direct,
    HitThreshold,
    PipelineRule,
    Prfaas,
    PrfaasPdd,
    RelayOnly,
    WanTime,
)
from testbed_agents.router.length import LengthSchedule
from testbed_agents.router.reach import Reach
from testbed_agents.router.view import ClusterView, InstanceView, RequestFacts
from testbed_agents.router.wan import predict_wan_ns


class Pipeline(StrEnum):
    """The stages of a request."""

    P_MD = "P-MD"
    P_RLD_MD = "P-RLD-MD"
    P_RLD = "P-RLD"


@dataclass(frozen=True, slots=True)
class Candidates:
    """The instances that were chosen for a request, before the pipeline is."""

    prefill: InstanceView
    decode: InstanceView
    relay: InstanceView | None

    @property
    def near(self) -> bool:
        """Whether prefill and decode share a site, so that no WAN is crossed."""
        return self.prefill.site == self.decode.site


@dataclass(frozen=True, slots=True)
class PipelineChoice:
    """A pipeline, and why: ``reason`` is a word to count, ``detail`` has the figures."""

    pipeline: Pipeline
    reason: str
    detail: str


class PipelinePolicy(Protocol):
    """A rule of choice."""

    def reach(self, request: RequestFacts, view: ClusterView) -> Reach:
        """Where to prefill."""
        ...

    def choose(
        self, request: RequestFacts, candidates: Candidates, view: ClusterView
    ) -> PipelineChoice:
        """Which pipeline."""
        ...


@dataclass(frozen=True, slots=True)
class HitThresholdPolicy:
    """See ``HitThreshold``."""

    rule: HitThreshold

    def reach(self, request: RequestFacts, view: ClusterView) -> Reach:
        """Anywhere."""
        return Reach.ANY

    def choose(
        self, request: RequestFacts, candidates: Candidates, view: ClusterView
    ) -> PipelineChoice:
        """P-RLD-MD below H."""
        rule = self.rule
        at = candidates.decode if rule.cache == "decode" else candidates.prefill
        rate = request.hit_rate(at.hit_blocks)
        if rate < rule.threshold:
            detail = f"hit {rate:.4f} < H {rule.threshold:.4f}"
            return _relayed(candidates, "hit-below-threshold", detail)
        return _direct("hit-at-threshold", f"hit {rate:.4f} >= H {rule.threshold:.4f}")


@dataclass(frozen=True, slots=True)
class WanTimePolicy:
    """See ``WanTime``."""

    rule: WanTime

    def reach(self, request: RequestFacts, view: ClusterView) -> Reach:
        """Anywhere."""
        return Reach.ANY

    def choose(
        self, request: RequestFacts, candidates: Candidates, view: ClusterView
    ) -> PipelineChoice:
        """P-RLD-MD where the transfer would be slow."""
        took = predict_wan_ns(request, candidates.prefill, candidates.decode, view)
        detail = f"predicted {took / 1e9:.4f} s, bound {self.rule.bound_ns / 1e9:.4f} s"
        if took > self.rule.bound_ns:
            return _relayed(candidates, "wan-slow", detail)
        return _direct("wan-fast", detail)


@dataclass(frozen=True, slots=True)
class DirectPolicy:
    """See ``Direct``."""

    def reach(self, request: RequestFacts, view: ClusterView) -> Reach:
        """Anywhere."""
        return Reach.ANY

    def choose(
        self, request: RequestFacts, candidates: Candidates, view: ClusterView
    ) -> PipelineChoice:
        """Always P-MD."""
        return _direct("direct", "always")


@dataclass(frozen=True, slots=True)
class RelayOnlyPolicy:
    """See ``RelayOnly``."""

    def reach(self, request: RequestFacts, view: ClusterView) -> Reach:
        """Anywhere."""
        return Reach.ANY

    def choose(
        self, request: RequestFacts, candidates: Candidates, view: ClusterView
    ) -> PipelineChoice:
        """P-RLD as long as RLD has room."""
        return _relayed(candidates, "relay-only", "always", Pipeline.P_RLD)


class PrfaasPolicy:
    """See ``Prfaas`` and ``PrfaasPdd``: ``inner`` serves what is prefilled far away.

    Holds the threshold, which follows the measured egress; deterministic, no clock.
    """

    def __init__(self, schedule: LengthSchedule, inner: PipelinePolicy) -> None:
        self.schedule = schedule
        self._inner = inner

    def reach(self, request: RequestFacts, view: ClusterView) -> Reach:
        """Far where the uncached part is long."""
        return self.schedule.reach(request, view)

    def choose(
        self, request: RequestFacts, candidates: Candidates, view: ClusterView
    ) -> PipelineChoice:
        """P-MD inside a site, else what ``inner`` says."""
        threshold = f"threshold {self.schedule.threshold_tokens} tokens"
        if candidates.near:
            return _direct("prefilled-near", threshold)
        inner = self._inner.choose(request, candidates, view)
        return PipelineChoice(inner.pipeline, inner.reason, f"{inner.detail}; {threshold}")


def pipeline_policy(rule: PipelineRule) -> PipelinePolicy:
    """The policy that a configuration names."""
    match rule:
        case HitThreshold():
            return HitThresholdPolicy(rule)
        case WanTime():
            return WanTimePolicy(rule)
        case Direct():
            return DirectPolicy()
        case RelayOnly():
            return RelayOnlyPolicy()
        case Prfaas():
            return PrfaasPolicy(LengthSchedule(rule.schedule), DirectPolicy())
        case PrfaasPdd():
            return PrfaasPolicy(LengthSchedule(rule.schedule), pipeline_policy(rule.pipeline))
    assert_never(rule)


def _direct(reason: str, detail: str) -> PipelineChoice:
    return PipelineChoice(Pipeline.P_MD, reason, detail)


def _relayed(
    candidates: Candidates, reason: str, detail: str, pipeline: Pipeline = Pipeline.P_RLD_MD
) -> PipelineChoice:
    """``pipeline``, or P-MD where RLD cannot take part."""
    relay = candidates.relay
    if relay is None:
        return _direct("relay-missing", f"{detail}; no RLD at {candidates.prefill.site}")
    if relay.full:
        return _direct("relay-full", f"{detail}; {relay.name} is full")
    return PipelineChoice(pipeline, reason, detail)
