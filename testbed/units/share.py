"""Parts of a whole (0 to 100 %) and loads (which may exceed the whole)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from testbed.units.quantity import Quantity

_UNITS = {
    "%": Fraction(10**13),
    "ppm": Fraction(10**9),
    "ppb": Fraction(10**6),
    "ppq": Fraction(1),
}


@dataclass(frozen=True, slots=True, order=True)
class Share(Quantity):
    """A part of a whole, 0 to 100 %, counted in parts per 10^15.

    netem holds a share in 32 bits (steps of 2.3e-10): the compiler states the
    difference between the requested and the applied share.
    """

    KIND: ClassVar[str] = "share"
    UNITS: ClassVar[dict[str, Fraction]] = _UNITS
    CANONICAL: ClassVar[tuple[str, ...]] = ("%", "ppm", "ppb", "ppq")
    MAXIMUM: ClassVar[int] = 10**15
    EXAMPLES: ClassVar[tuple[str, ...]] = ("90 %", "0.1 %", "130 ppm")

    @property
    def fraction(self) -> float:
        """The share as a number from 0 to 1."""
        return self.steps / 1e15


@dataclass(frozen=True, slots=True, order=True)
class Load(Quantity):
    """Demand over capacity, 0 to 1000 %: above 100 % a queue must grow."""

    KIND: ClassVar[str] = "load"
    UNITS: ClassVar[dict[str, Fraction]] = _UNITS
    CANONICAL: ClassVar[tuple[str, ...]] = ("%", "ppm", "ppb", "ppq")
    MAXIMUM: ClassVar[int] = 10**16
    EXAMPLES: ClassVar[tuple[str, ...]] = ("104 %", "90 %")

    @property
    def ratio(self) -> float:
        """The load as a number; 1 means demand equals capacity."""
        return self.steps / 1e15
