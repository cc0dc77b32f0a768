"""``real_time:``: at which scale a live machine carries a scenario."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from testbed.contract.record import Record
from testbed.units import Share

Slow = Annotated[float, Field(strict=True, ge=1, le=10_000, allow_inf_nan=False)]
_WHOLE = Share(Share.MAXIMUM)


class RealTimeChoice(Record):
    """What ``--clock real`` changes; left out, nothing.

    Smaller sizes keep the times of transfers, but a queue holds fewer packets. Slow motion keeps
    all ratios but those with the kernel's own timers.
    """

    size: Share = _WHOLE
    """Share of all bytes: KV, rates, buffers, chunks, socket buffers."""
    slow: Slow = 1.0
    """How many times longer everything takes."""

    @field_validator("size")
    @classmethod
    def _something_is_left(cls, size: Share) -> Share:
        if size.steps == 0:
            raise ValueError("must be above 0 %")
        return size
