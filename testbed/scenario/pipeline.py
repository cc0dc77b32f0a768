"""``serving.pipeline``: by which rule a request takes its stages, as an author writes it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from testbed.contract.record import Record
from testbed.contract.router import (
    Direct,
    HitThreshold,
    LengthThreshold,
    Prfaas,
    PrfaasPdd,
    RelayOnly,
    WanTime,
)
from testbed.units import Duration, Share, Tokens


class HitThresholdChoice(Record):
    """The paper's rule: through RLD where the hit rate is below ``threshold`` (its H)."""

    kind: Literal["hit-threshold"]
    threshold: Share

    def rule(self) -> HitThreshold:
        """The same as the router sees it."""
        return HitThreshold(threshold=self.threshold.fraction)


class WanTimeChoice(Record):
    """Through RLD where the transfer to MD is predicted to take longer than ``bound``."""

    kind: Literal["wan-time"]
    bound: Duration

    @model_validator(mode="after")
    def _above_zero(self) -> Self:
        if self.bound.ns == 0:
            raise ValueError("bound must be longer than 0 ns; direct and hit-threshold need none")
        return self

    def rule(self) -> WanTime:
        """The same as the router sees it."""
        return WanTime(bound_ns=self.bound.ns)


class DirectChoice(Record):
    """Never through RLD."""

    kind: Literal["direct"]

    def rule(self) -> Direct:
        """The same as the router sees it."""
        return Direct()


class RelayOnlyChoice(Record):
    """Never to MD: an ablation."""

    kind: Literal["relay-only"]

    def rule(self) -> RelayOnly:
        """The same as the router sees it."""
        return RelayOnly()


class ScheduleChoice(Record):
    """Which requests are prefilled far away: more than ``threshold`` uncached tokens.

    Each ``interval`` the threshold grows by ``gain`` where the measured egress of the far
    sites is at or above ``high`` of the line, and shrinks where it is at or below ``low``.
    """

    threshold: Tokens = Tokens(19_400)
    lowest: Tokens = Tokens(1_024)
    highest: Tokens = Tokens(1_048_576)
    low: Share = Share.parse("70 %")
    high: Share = Share.parse("90 %")
    gain: Share = Share.parse("10 %")
    interval: Duration = Duration(10**9)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not 0 < self.lowest.count <= self.threshold.count <= self.highest.count:
            raise ValueError("needs 0 < lowest <= threshold <= highest")
        if self.low.steps >= self.high.steps:
            raise ValueError("needs low < high")
        if self.gain.steps == 0 or self.interval.ns == 0:
            raise ValueError(
                "gain and interval must be above 0; for a fixed threshold set lowest and highest "
                "to it"
            )
        return self

    def rule(self) -> LengthThreshold:
        """The same as the router sees it."""
        return LengthThreshold(
            threshold_tokens=self.threshold.count,
            lowest_tokens=self.lowest.count,
            highest_tokens=self.highest.count,
            low=self.low.fraction,
            high=self.high.fraction,
            gain=self.gain.fraction,
            interval_ns=self.interval.ns,
        )


class PrfaasChoice(Record):
    """Prefill as a service: long prompts are prefilled far away, always without RLD."""

    kind: Literal["prfaas"]
    schedule: ScheduleChoice = ScheduleChoice()

    def rule(self) -> Prfaas:
        """The same as the router sees it."""
        return Prfaas(schedule=self.schedule.rule())


class PrfaasPddChoice(Record):
    """The same, and ``pipeline`` says which of those far away go through RLD."""

    kind: Literal["prfaas-pdd"]
    schedule: ScheduleChoice = ScheduleChoice()
    pipeline: Annotated[HitThresholdChoice | WanTimeChoice, Field(discriminator="kind")]

    def rule(self) -> PrfaasPdd:
        """The same as the router sees it."""
        return PrfaasPdd(schedule=self.schedule.rule(), pipeline=self.pipeline.rule())


PipelineChoice = Annotated[
    HitThresholdChoice
    | WanTimeChoice
    | DirectChoice
    | RelayOnlyChoice
    | PrfaasChoice
    | PrfaasPddChoice,
    Field(discriminator="kind"),
]
