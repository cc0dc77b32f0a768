"""Records of what was applied and of what was compared."""

from __future__ import annotations

from enum import StrEnum

from testbed.contract.record import Record


class Direction(StrEnum):
    """Of a link: forward is a to b."""

    FORWARD = "forward"
    BACKWARD = "backward"


class AppliedQdisc(Record):
    """One object that was put into a wire: what, where, and the bytes that were sent."""

    link: str
    direction: Direction
    device: str
    kind: str
    options: str
    """TCA_OPTIONS as sent, in hexadecimal."""


class FieldCheck(Record):
    """One field: as requested (SI), as compiled and as read back (kernel units)."""

    link: str
    direction: Direction
    device: str
    field: str
    requested: str
    compiled: str
    applied: str
    ok: bool
