"""How exact a measurement can be: under the virtual clock, and on a live machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Precision:
    """What a measurement of a link waits for, and what it accepts.

    Attributes:
        margin_ns: how long after the last expected arrival the receiver still listens, where
            not all came.
        delay_ns: what a lone frame may be late beside its serialisation.
        rate, fast_rate: share by which a rate may be off; fast from 100 Gbit/s on, where a
            frame is shorter than the virtual clock's quantum.
    """

    margin_ns: int
    delay_ns: int
    rate: float
    fast_rate: float
    live: bool = False
    """Sending takes time: measure with the largest frames, and listen only until all came."""


EXACT = Precision(margin_ns=2_000_000, delay_ns=1_000, rate=0.005, fast_rate=0.02)
"""The virtual clock: see docs/limitations.md for the quantum."""
LIVE = Precision(margin_ns=400_000_000, delay_ns=3_000_000, rate=0.1, fast_rate=0.1, live=True)
"""A real clock: whoever is late by a scheduler's tick or two is not wrong."""
