"""What all quantities share: exact parsing, canonical text, a JSON Schema.

::

    "29.75 ms" ──parse──> Duration(29_750_000) ──str──> "29.75 ms"
       text               whole steps of 1 ns           canonical text
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Self

from pydantic.json_schema import JsonSchemaValue

from testbed.errors import UnitError
from testbed.units.written import Written

_TEXT = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)[ ]?(?P<unit>[A-Za-z%/][A-Za-z%/]*)?")
_WHOLE_DIGITS, _PART_DIGITS = 18, 15
"""Digits before and after the point that may be written."""
_SHOWN = 40
"""Characters of the author's text that a message repeats."""
_DECIMALS = 3
"""Digits after the point that canonical text may show before a smaller unit is taken."""


@dataclass(frozen=True, slots=True, order=True)
class Quantity(Written):
    """A whole number of steps of one kind of quantity.

    Attributes:
        steps: the value, counted in the step of the kind; exact.

    Raises:
        UnitError: the value lies outside of 0 … ``MAXIMUM``.
    """

    KIND: ClassVar[str]
    UNITS: ClassVar[dict[str, Fraction]]
    """Steps that one of each unit holds; every accepted spelling is a key."""
    CANONICAL: ClassVar[tuple[str, ...]]
    """Units of canonical text, largest first; the last holds every value exactly."""
    WHOLE_ONLY: ClassVar[frozenset[str]] = frozenset()
    """Canonical units that are used for whole numbers only (binary sizes)."""
    MAXIMUM: ClassVar[int]
    EXAMPLES: ClassVar[tuple[str, ...]]

    steps: int

    def __post_init__(self) -> None:
        if not 0 <= self.steps <= self.MAXIMUM:
            raise self._fault(
                f"{self.steps} {self.CANONICAL[-1]}-steps",
                "is negative" if self.steps < 0 else "is too large",
                f"use 0 to {type(self)._write(self.MAXIMUM)}",
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``text``, a decimal number and a unit with at most one space between.

        Raises:
            UnitError: no unit, an unknown one, not a finite non-negative decimal
                number, finer than one step, or over the maximum.
        """
        shown = _short(text)
        stripped = text.strip()
        if stripped.startswith("-"):
            raise cls._fault(repr(shown), "is negative", cls._example())
        match = _TEXT.fullmatch(stripped)
        if match is None:
            raise cls._fault(repr(shown), "is not a number with a unit", cls._example())
        unit = match["unit"]
        if unit is None:
            raise cls._fault(repr(shown), "has no unit", cls._example())
        if unit not in cls.UNITS:
            raise cls._fault(repr(shown), f"has the unknown unit {_short(unit)!r}", cls._allowed())
        whole, _, part = match["number"].partition(".")
        if len(whole) > _WHOLE_DIGITS:
            raise cls._fault(repr(shown), "is too large", f"use at most {cls._write(cls.MAXIMUM)}")
        if len(part) > _PART_DIGITS:
            raise cls._fault(repr(shown), "is finer than the testbed can hold", cls._finest())
        steps = Fraction(match["number"]) * cls.UNITS[unit]
        if steps > cls.MAXIMUM:
            raise cls._fault(repr(shown), "is too large", f"use at most {cls._write(cls.MAXIMUM)}")
        if steps.denominator != 1:
            raise cls._fault(repr(shown), "is finer than the testbed can hold", cls._finest())
        return cls(int(steps))

    def __str__(self) -> str:
        return self._write(self.steps)

    @classmethod
    def pattern(cls) -> str:
        """Regular expression of accepted text, for editors (JSON Schema)."""
        units = "|".join(sorted(cls.UNITS, key=lambda unit: (-len(unit), unit)))
        return rf"^[0-9]{{1,18}}(\.[0-9]{{1,15}})? ?({units})$"

    @classmethod
    def _write(cls, steps: int) -> str:
        if steps == 0:
            return f"0 {cls.EXAMPLES[0].split(' ')[1]}"
        for unit in cls.CANONICAL:
            size = cls.UNITS[unit]
            amount = steps / size
            digits = 0 if unit in cls.WHOLE_ONLY else _DECIMALS
            last = unit == cls.CANONICAL[-1]
            if (amount >= 1 and (amount * 10**digits).denominator == 1) or last:
                return f"{_decimal(amount)} {unit}"
        raise cls._fault(str(steps), "has no canonical text", "report this as a defect")

    @classmethod
    def _fault(cls, subject: str, cause: str, remedy: str) -> UnitError:
        return UnitError(f"read a {cls.KIND}", subject, cause, remedy)

    @classmethod
    def _example(cls) -> str:
        return f'write a number and a unit, for example "{cls.EXAMPLES[0]}"; {cls._allowed()}'

    @classmethod
    def _allowed(cls) -> str:
        return f"units of a {cls.KIND}: {', '.join(cls.UNITS)}"

    @classmethod
    def _finest(cls) -> str:
        return f"use a multiple of {cls._write(1)}"

    @classmethod
    def not_text(cls, value: object) -> UnitError:
        """A bare number has no unit; anything else is no number at all."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return cls._fault(repr(value)[:40], "is not a number with a unit", cls._example())
        return cls._fault(repr(value), "has no unit", cls._example())

    @classmethod
    def json_schema(cls) -> JsonSchemaValue:
        """Name, pattern and examples of the kind."""
        return {
            "type": "string",
            "title": cls.__name__,
            "pattern": cls.pattern(),
            "examples": list(cls.EXAMPLES),
        }


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _decimal(amount: Fraction) -> str:
    """Exact decimal text of a fraction whose denominator divides a power of ten."""
    digits = 0
    while (amount * 10**digits).denominator != 1:
        digits += 1
    scaled = int(amount * 10**digits)
    return f"{Decimal(scaled).scaleb(-digits):f}"
