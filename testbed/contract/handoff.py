"""How a request passes from RLD to MD, and how long RLD may keep it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from testbed.contract.record import Record


class HandoffMode(StrEnum):
    """How MD takes over."""

    CATCH_UP = "catch-up"
    ONE_SHOT = "one-shot"
    DYNAMIC = "dynamic"
    INCREMENTAL_KV = "incremental-kv"


class Occupancy(Record):
    """How long RLD may decode one request: the paper's time-bounded occupation.

    At most ``hold_ns``, and at most a number of tokens that falls linearly from
    ``most_tokens`` at load ``easy`` and below to ``least_tokens`` at load 1.
    """

    most_tokens: int = Field(default=1024, gt=0)
    least_tokens: int = Field(default=128, gt=0)
    easy: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.5
    hold_ns: int = Field(default=60_000_000_000, gt=0)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.least_tokens > self.most_tokens:
            raise ValueError("needs least_tokens <= most_tokens")
        return self


class HandoffConfig(Record):
    """The handoff of a run. ``dynamic`` is one-shot from ``upper`` load of RLD on, until
    the load is back at ``lower`` or below."""

    mode: HandoffMode = HandoffMode.CATCH_UP
    lower: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.5
    upper: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.8
    occupancy: Occupancy = Occupancy()

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.lower >= self.upper:
            raise ValueError("needs lower < upper")
        return self
