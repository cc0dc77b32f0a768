"""Router buffers: a size, or a multiple of the bandwidth-delay product ("1 bdp")."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic.json_schema import JsonSchemaValue

from testbed.errors import UnitError
from testbed.units import Size, Written

_BDP = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?) ?bdp")
MOST_BDP = 9_999
"""Multiples of bandwidth x delay that a buffer may hold."""
FORMS = 'a buffer is a size ("64 MiB") or a multiple of rate x RTT ("1 bdp")'


@dataclass(frozen=True, slots=True)
class Buffer(Written):
    """How many bytes a rate stage may queue.

    Attributes:
        size: the buffer itself, or None where it is a multiple.
        thousandths: the multiple of rate x RTT in thousandths, or 0.
    """

    size: Size | None = None
    thousandths: int = 0

    @classmethod
    def parse(cls, text: str) -> Buffer:
        """Read ``"64 MiB"`` or ``"1.5 bdp"``. Raises UnitError."""
        match = _BDP.fullmatch(text.strip())
        if match is None:
            return cls(size=Size.parse(text))
        shown = repr(text if len(text) <= 40 else f"{text[:40]}…")
        whole, _, rest = match["number"].partition(".")
        whole, rest = whole.lstrip("0") or "0", rest.rstrip("0")
        if len(whole) > len(str(MOST_BDP)):
            raise UnitError("read a buffer", shown, "is too large", f'use at most "{MOST_BDP} bdp"')
        if len(rest) > 3:
            raise UnitError("read a buffer", shown, "is too fine", "use at most three decimals")
        thousandths = int(whole) * 1000 + int(f"{rest:0<3}")
        if thousandths == 0:
            raise UnitError("read a buffer", shown, "is zero", 'write, say, "1 bdp"')
        return cls(thousandths=thousandths)

    def bytes(self, rate_bps: int, rtt_ns: int) -> int:
        """Bytes of this buffer on a link of ``rate_bps`` and ``rtt_ns``, rounded up."""
        if self.size is not None:
            return self.size.bytes
        return -(-rate_bps * rtt_ns * self.thousandths // (8 * 10**9 * 1000))

    def __str__(self) -> str:
        if self.size is not None:
            return str(self.size)
        whole, rest = divmod(self.thousandths, 1000)
        return f"{whole}.{rest:03d}".rstrip("0").rstrip(".") + " bdp"

    @classmethod
    def not_text(cls, value: object) -> UnitError:
        """A bare number could be bytes or a multiple."""
        return UnitError("read a buffer", repr(value)[:40], "has no unit", FORMS)

    @classmethod
    def in_words(cls, fault: UnitError) -> str:
        """What Size finds wrong gets both forms as its hint."""
        hint = fault.remedy if fault.attempt == "read a buffer" else FORMS
        return f"{fault.subject} {fault.cause}; {hint}"

    @classmethod
    def json_schema(cls) -> JsonSchemaValue:
        """Pattern of both forms."""
        pattern = rf"{Size.pattern()}|^[0-9]{{1,4}}(\.[0-9]{{1,3}})? ?bdp$"
        return {"type": "string", "pattern": pattern, "examples": ["1 bdp", "64 MiB"]}
