"""Which kernel fields stand behind a measured quantity, for the row that reports it."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.fidelity.row import CalibrationRow
from testbed.lab.tc import FieldCheck
from testbed.lab.tc.path import Way

_FATE = ("loss", "loss_model", "duplicate", "corrupt", "ecn", "seed")
_NOTHING = ("0", "None", "False", "absent")
"""Values of fields that are not in use; they say nothing in a table."""


def with_fields(row: CalibrationRow, way: Way, fields: Iterable[FieldCheck]) -> CalibrationRow:
    """The row with what was compiled and applied, in kernel units."""
    wanted = _fields_of(row.quantity, way)
    found = [check for check in fields if (check.device, check.field) in wanted]
    used = [c for c in found if c.compiled not in _NOTHING or not c.ok]
    return row.model_copy(
        update={
            "compiled": ", ".join(f"{c.field} {c.compiled}" for c in used),
            "applied": ", ".join(f"{c.field} {c.applied}" for c in used),
        }
    )


def _fields_of(quantity: str, way: Way) -> frozenset[tuple[str, str]]:
    """(device, field) pairs; ``quantity`` starts with the word that says what was measured."""
    match quantity.split(maxsplit=1)[0].rstrip(","):
        case "rate":
            names = [(way.rate, "netem.rate")]
        case "buffer":
            names = [(way.rate, "police.rate"), (way.rate, "police.burst_ns")]
        case "delay":
            names = [(way.leaves, "netem.latency_ns"), (way.leaves, "departure delays")]
        case "jitter":
            names = [(way.leaves, "netem.jitter_ns"), (way.leaves, "departure delays")]
        case "fate":
            names = [(way.leaves, f"netem.{name}") for name in _FATE]
        case _:
            names = []
    return frozenset(names)
