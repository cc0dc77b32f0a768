"""One compared quantity of one direction of one link."""

from __future__ import annotations

from testbed.contract.record import Record


class CalibrationRow(Record):
    """What was asked for, compiled, applied and measured, in words with units."""

    link: str
    direction: str
    quantity: str
    requested: str
    compiled: str = ""
    applied: str = ""
    measured: str = ""
    tolerance: str = ""
    ok: bool
