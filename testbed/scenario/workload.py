"""The ``workload:`` part of a scenario: when requests come and how large they are.

Only the description lives here; ``testbed.workload.draw`` turns it into requests
(with ``testbed.contract.agent.Shape`` for bytes and blocks). Every union is told
apart by its key ``kind``. Lengths are *emulated* tokens.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from testbed.contract.record import Record
from testbed.scenario.entry import Count, Line, Number
from testbed.units import Duration, Frequency, Load, Share, Tokens

MEAN_TOLERANCE = 0.005
"""How far a stated mean hit rate may lie from the mean of its distribution."""


class PoissonArrivals(Record):
    """Open loop: independent arrivals at a mean rate over warm-up and window."""

    kind: Literal["poisson"]
    rate: Frequency


class BurstyArrivals(Record):
    """Open loop: Poisson bursts and silences whose lengths are exponential.

    ``rate`` is the mean over all time; while a burst lasts (``burst`` on average)
    requests come at ``rate * (burst + silence) / burst``, in a silence none come.
    """

    kind: Literal["bursty"]
    rate: Frequency
    burst: Duration
    silence: Duration

    @model_validator(mode="after")
    def _burst_lasts(self) -> Self:
        if self.burst.ns == 0:
            raise ValueError("burst must be longer than 0 ns")
        return self


class EvenArrivals(Record):
    """Open loop: one request every ``every``, the first at ``first``; for small runs."""

    kind: Literal["even"]
    every: Duration
    first: Duration = Duration(0)
    count: Count | None = None
    """Number of requests; None fills warm-up and window."""

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.every.ns == 0:
            raise ValueError("every must be longer than 0 ns")
        return self


class TraceArrivals(Record):
    """Open loop: arrivals (and what else has kind ``trace``) from a file of a public format.

    Azure and BurstGPT files have no block ids, so neither hits nor prompts can come from
    them. A relative path is read from the folder of the scenario file.
    """

    kind: Literal["trace"]
    file: Line
    format: Literal["mooncake", "bailian", "azure", "burstgpt"] = "mooncake"
    rate: Frequency | None = None
    """Mean rate to which the time axis is stretched; None keeps the trace's own."""
    take: Count | None = None
    """Number of leading requests to use; None uses all that fit the window."""


class ClosedArrivals(Record):
    """Closed loop: ``users`` send their next request when the last one is answered."""

    kind: Literal["closed"]
    users: Count
    requests: Count
    """Requests prepared in all; the window may end before all are sent."""


Arrivals = Annotated[
    PoissonArrivals | BurstyArrivals | EvenArrivals | TraceArrivals | ClosedArrivals,
    Field(discriminator="kind"),
]


class FixedTokens(Record):
    """Every request has the same length."""

    kind: Literal["fixed"]
    tokens: Tokens


class UniformTokens(Record):
    """Lengths spread evenly over ``low`` to ``high``, both included."""

    kind: Literal["uniform"]
    low: Tokens
    high: Tokens

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not 0 < self.low.count <= self.high.count:
            raise ValueError("needs 0 < low <= high")
        return self


class GeometricTokens(Record):
    """Lengths 1, 2, 3 … with a constant chance to end; ``high`` cuts the tail."""

    kind: Literal["geometric"]
    mean: Tokens
    high: Tokens

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not 0 < self.mean.count <= self.high.count:
            raise ValueError("needs 0 < mean <= high")
        return self


class LognormalTokens(Record):
    """Log-normal lengths given by mean and median, kept within ``low`` to ``high``.

    sigma = sqrt(2 ln(mean / median)), mu = ln(median), before the bounds. Mean
    1,000 and median 242 put 30 % of the requests below 100 tokens.
    """

    kind: Literal["lognormal"]
    mean: Tokens
    median: Tokens
    low: Tokens = Tokens(1)
    high: Tokens

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not 0 < self.low.count <= self.median.count < self.mean.count <= self.high.count:
            raise ValueError("needs 0 < low <= median < mean <= high")
        return self


class TraceTokens(Record):
    """The length that the trace of the arrivals gives, at most ``high``."""

    kind: Literal["trace"]
    high: Tokens


InputLength = Annotated[
    FixedTokens | UniformTokens | LognormalTokens | TraceTokens, Field(discriminator="kind")
]
OutputLength = Annotated[
    FixedTokens | UniformTokens | GeometricTokens | LognormalTokens | TraceTokens,
    Field(discriminator="kind"),
]


class BetaHits(Record):
    """Prefix hit rates low + (high - low) * Beta(alpha, beta).

    ``mean`` is stated by the author and must agree with the parameters.
    """

    kind: Literal["beta"]
    alpha: Number
    beta: Number
    low: Share
    high: Share
    mean: Share

    @model_validator(mode="after")
    def _mean_agrees(self) -> Self:
        if not self.low.steps < self.high.steps:
            raise ValueError("needs low < high")
        low, high = self.low.fraction, self.high.fraction
        mean = low + (high - low) * self.alpha / (self.alpha + self.beta)
        if abs(mean - self.mean.fraction) > MEAN_TOLERANCE:
            raise ValueError(
                f"mean is {self.mean} but the parameters give {100 * mean:.2f} %; "
                "change mean, alpha or beta"
            )
        return self


class UniformHits(Record):
    """Prefix hit rates spread evenly over ``low`` to ``high``."""

    kind: Literal["uniform"]
    low: Share
    high: Share

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low.steps > self.high.steps:
            raise ValueError("needs low <= high")
        return self


class FixedHits(Record):
    """Every request hits the same share of its prompt."""

    kind: Literal["fixed"]
    share: Share


class TraceHits(Record):
    """Hits that an unbounded cache would give on the trace's block ids."""

    kind: Literal["trace"]


class PromptHits(Record):
    """Hits that an unbounded cache would give on the prompts, which are no documents."""

    kind: Literal["prompts"]


HitRate = Annotated[
    BetaHits | UniformHits | FixedHits | TraceHits | PromptHits, Field(discriminator="kind")
]


class DocumentPrompts(Record):
    """Each prompt begins with a part of one of ``count`` documents, as long as its hit."""

    kind: Literal["documents"] = "documents"
    count: Count = 1


class AgentSessions(Record):
    """Each prompt is the next turn of one of ``sessions`` concurrent sessions.

    It repeats its session so far and adds the tokens of ``input``. ``turns`` is the mean
    number of turns; all sessions begin with the same ``system`` tokens. A session whose
    prompt would be longer than ``high`` ends, and another takes its place.
    """

    kind: Literal["sessions"]
    sessions: Count
    turns: Number
    system: Tokens = Tokens(0)
    high: Tokens


class TracePrompts(Record):
    """Prompts share what the block ids of the arrivals' trace share."""

    kind: Literal["trace"]


Prompts = Annotated[DocumentPrompts | AgentSessions | TracePrompts, Field(discriminator="kind")]


class Workload(Record):
    """What clients ask for."""

    arrivals: Arrivals
    input: InputLength
    hit: HitRate
    output: OutputLength
    prompts: Prompts = DocumentPrompts()
    """Which prompts share which prefixes; one document is what all caches hold at first."""
    offered_load: Load | None = None
    """Payload offered to the WAN in the measuring window over what its legs can
    carry; sizes of all requests are rescaled by one factor to meet it. None keeps
    the raw draw."""
    assignment: Literal["round-robin", "random"] = "round-robin"
    """How requests are given to prefill and decode instances."""

    @model_validator(mode="after")
    def _trace_parts_need_a_trace(self) -> Self:
        if self.arrivals.kind != "trace":
            for name, part in (
                ("input", self.input), ("hit", self.hit), ("output", self.output),
                ("prompts", self.prompts),
            ):  # fmt: skip
                if part.kind == "trace":
                    raise ValueError(f"{name} has kind trace but arrivals have no trace")
        if self.arrivals.kind == "closed" and self.offered_load is not None:
            raise ValueError(
                "offered_load needs an open loop: a closed loop's load follows from its answers"
            )
        return self

    @model_validator(mode="after")
    def _hits_and_prompts_agree(self) -> Self:
        prompts, follow = self.prompts.kind, self.hit.kind == "prompts"
        if follow == (prompts == "documents"):
            raise ValueError(
                f"prompts of kind {prompts} need hits of "
                + ("another kind than prompts" if follow else "kind prompts")
            )
        if prompts == "trace" and self.input.kind != "trace":
            raise ValueError("prompts of kind trace need an input of kind trace")
        return self

    @property
    def structured(self) -> bool:
        """Whether requests carry spans; prompts on one document are known by their hit."""
        return self.prompts != DocumentPrompts()

    @property
    def longest_input(self) -> int:
        """Largest possible prompt in emulated tokens."""
        if self.prompts.kind == "sessions":
            return self.prompts.high.count
        return _longest(self.input)

    @property
    def longest_output(self) -> int:
        """Largest possible answer in tokens."""
        return _longest(self.output)


def _longest(
    length: FixedTokens | UniformTokens | GeometricTokens | LognormalTokens | TraceTokens,
) -> int:
    return length.tokens.count if length.kind == "fixed" else length.high.count
