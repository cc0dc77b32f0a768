"""Times and what happens per time: durations, bit rates, event frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from testbed.units.quantity import Quantity


@dataclass(frozen=True, slots=True, order=True)
class Duration(Quantity):
    """A span of time in whole nanoseconds, at most 10 days.

    >>> Duration.parse("29.75 ms").ns
    29750000
    """

    KIND: ClassVar[str] = "duration"
    UNITS: ClassVar[dict[str, Fraction]] = {
        "ns": Fraction(1),
        "us": Fraction(1_000),
        "ms": Fraction(1_000_000),
        "s": Fraction(1_000_000_000),
        "min": Fraction(60_000_000_000),
        "h": Fraction(3_600_000_000_000),
    }
    CANONICAL: ClassVar[tuple[str, ...]] = ("s", "ms", "us", "ns")
    MAXIMUM: ClassVar[int] = 10 * 24 * 3_600 * 1_000_000_000
    EXAMPLES: ClassVar[tuple[str, ...]] = ("10 ms", "29.75 ms", "60 s")

    @property
    def ns(self) -> int:
        """Nanoseconds."""
        return self.steps

    @property
    def seconds(self) -> float:
        """Seconds, for arithmetic that is a model anyway."""
        return self.steps / 1e9


@dataclass(frozen=True, slots=True, order=True)
class Rate(Quantity):
    """A data rate in whole bit/s, decimal prefixes, at most 10 Tbit/s."""

    KIND: ClassVar[str] = "rate"
    UNITS: ClassVar[dict[str, Fraction]] = {
        "bit/s": Fraction(1),
        "kbit/s": Fraction(10**3),
        "Mbit/s": Fraction(10**6),
        "Gbit/s": Fraction(10**9),
        "Tbit/s": Fraction(10**12),
    }
    CANONICAL: ClassVar[tuple[str, ...]] = ("Tbit/s", "Gbit/s", "Mbit/s", "kbit/s", "bit/s")
    MAXIMUM: ClassVar[int] = 10 * 10**12
    EXAMPLES: ClassVar[tuple[str, ...]] = ("10 Gbit/s", "2.5 Gbit/s", "400 Gbit/s")

    @property
    def bps(self) -> int:
        """Bit per second."""
        return self.steps


@dataclass(frozen=True, slots=True, order=True)
class Frequency(Quantity):
    """Events per time, counted in millionths of an event per second."""

    KIND: ClassVar[str] = "frequency"
    UNITS: ClassVar[dict[str, Fraction]] = {
        "/s": Fraction(10**6),
        "/min": Fraction(10**6, 60),
        "/h": Fraction(10**6, 3600),
    }
    CANONICAL: ClassVar[tuple[str, ...]] = ("/s",)
    MAXIMUM: ClassVar[int] = 10**6 * 10**6
    EXAMPLES: ClassVar[tuple[str, ...]] = ("80 /s", "0.5 /s", "30 /min")

    @property
    def per_second(self) -> float:
        """Events per second."""
        return self.steps / 1e6
