"""How requests are routed: which pipeline serves one, and which instances.

Values only; the rules that read them live with the router agent.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from testbed.contract.record import Record

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A part of a whole."""


class HitThreshold(Record):
    """The paper's rule: P-RLD-MD where the hit rate is below H (its value is unpublished)."""

    kind: Literal["hit-threshold"] = "hit-threshold"
    threshold: Share
    cache: Literal["prefill", "decode"] = "decode"
    """Whose cache the hit rate is taken from. MD's decides how much crosses the WAN."""


class WanTime(Record):
    """P-RLD-MD where the transfer to MD is predicted to take longer than ``bound_ns``."""

    kind: Literal["wan-time"] = "wan-time"
    bound_ns: int = Field(gt=0)


class Direct(Record):
    """Always P-MD: the cross-datacenter baseline without relay decode."""

    kind: Literal["direct"] = "direct"


class RelayOnly(Record):
    """Always P-RLD: an ablation, which loses the parity of P's and MD's caches."""

    kind: Literal["relay-only"] = "relay-only"


class LengthThreshold(Record):
    """Prefill far away what has more than a threshold of uncached tokens, with feedback.

    Once every ``interval_ns`` the threshold is multiplied by ``1 + gain`` where the
    far sites' measured egress is at or above ``high`` of the link, and divided by it
    where it is at or below ``low``; it stays within ``[lowest_tokens, highest_tokens]``.
    """

    threshold_tokens: int = Field(default=19_400, gt=0)
    lowest_tokens: int = Field(default=1_024, gt=0)
    highest_tokens: int = Field(default=1_048_576, gt=0)
    low: Share = 0.7
    high: Share = 0.9
    gain: float = Field(default=0.1, gt=0, le=1)
    interval_ns: int = Field(default=1_000_000_000, gt=0)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.lowest_tokens <= self.threshold_tokens <= self.highest_tokens:
            raise ValueError("needs lowest_tokens <= threshold_tokens <= highest_tokens")
        if self.low >= self.high:
            raise ValueError("needs low < high")
        return self


class Prfaas(Record):
    """Prefill as a service: a length threshold says which cluster prefills; always P-MD."""

    kind: Literal["prfaas"] = "prfaas"
    schedule: LengthThreshold = LengthThreshold()


class PrfaasPdd(Record):
    """PrfaaS says which cluster prefills, PDD which pipeline then serves the far ones."""

    kind: Literal["prfaas-pdd"] = "prfaas-pdd"
    schedule: LengthThreshold = LengthThreshold()
    pipeline: Annotated[HitThreshold | WanTime, Field(discriminator="kind")]


PipelineRule = Annotated[
    HitThreshold | WanTime | Prfaas | PrfaasPdd | Direct | RelayOnly,
    Field(discriminator="kind"),
]


class RandomInstance(Record):
    """Any instance with equal chance; a pure function of seed and request."""

    kind: Literal["random"] = "random"
    seed: int = Field(default=0, ge=0, lt=1 << 63)


class LeastLoaded(Record):
    """The instance with the least work."""

    kind: Literal["least-loaded"] = "least-loaded"


class SessionSticky(Record):
    """All requests of a session on one instance; requests without one on the least loaded."""

    kind: Literal["session-sticky"] = "session-sticky"
    seed: int = Field(default=0, ge=0, lt=1 << 63)


class LongestPrefix(Record):
    """The instance that holds most of the prompt, among those that are not overloaded.

    Overloaded is what has more than ``load_cap`` times the mean load plus a slack, which
    keeps the affinity of a nearly idle cluster.
    """

    kind: Literal["longest-prefix"] = "longest-prefix"
    load_cap: float = Field(default=1.25, ge=1, le=1000)
    slack_tokens: int = Field(default=65_536, ge=0)
    """For P, whose load is the tokens in its queue."""
    slack_sequences: int = Field(default=8, ge=0)
    """For RLD and MD, whose load is their active sequences."""


InstanceRule = Annotated[
    RandomInstance | LeastLoaded | SessionSticky | LongestPrefix, Field(discriminator="kind")
]


class RouterConfig(Record):
    """Everything that a router decides by."""

    pipeline: PipelineRule
    prefill: InstanceRule = LongestPrefix()
    relay: InstanceRule = LeastLoaded()
    decode: InstanceRule = LongestPrefix()
