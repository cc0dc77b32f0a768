"""Amounts: bytes and emulated tokens."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from testbed.units.quantity import Quantity


@dataclass(frozen=True, slots=True, order=True)
class Size(Quantity):
    """An amount of data in whole bytes; binary (KiB) and decimal (kB) prefixes."""

    KIND: ClassVar[str] = "size"
    UNITS: ClassVar[dict[str, Fraction]] = {
        "B": Fraction(1),
        "KiB": Fraction(2**10),
        "MiB": Fraction(2**20),
        "GiB": Fraction(2**30),
        "TiB": Fraction(2**40),
        "kB": Fraction(10**3),
        "MB": Fraction(10**6),
        "GB": Fraction(10**9),
        "TB": Fraction(10**12),
    }
    CANONICAL: ClassVar[tuple[str, ...]] = (
        "TiB",
        "GiB",
        "MiB",
        "KiB",
        "TB",
        "GB",
        "MB",
        "kB",
        "B",
    )
    WHOLE_ONLY: ClassVar[frozenset[str]] = frozenset({"TiB", "GiB", "MiB", "KiB"})
    MAXIMUM: ClassVar[int] = 2**50
    EXAMPLES: ClassVar[tuple[str, ...]] = ("4 MiB", "256 KiB", "1500 B")

    @property
    def bytes(self) -> int:
        """Bytes."""
        return self.steps


@dataclass(frozen=True, slots=True, order=True)
class Tokens(Quantity):
    """A number of emulated tokens; ``Ki`` is 1,024 as in "64 Kitokens" = 65,536."""

    KIND: ClassVar[str] = "number of tokens"
    UNITS: ClassVar[dict[str, Fraction]] = {
        "tokens": Fraction(1),
        "token": Fraction(1),
        "Kitokens": Fraction(2**10),
        "Mitokens": Fraction(2**20),
    }
    CANONICAL: ClassVar[tuple[str, ...]] = ("tokens",)
    MAXIMUM: ClassVar[int] = 2**30
    EXAMPLES: ClassVar[tuple[str, ...]] = ("65536 tokens", "64 Kitokens", "1 token")

    @property
    def count(self) -> int:
        """Tokens."""
        return self.steps
