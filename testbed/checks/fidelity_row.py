"""Rows of ``fidelity.json``: what the plan promised against what the lab was.

The file is a list of rows, or an object that groups lists of rows by section. A row
is an object of scalars with a boolean ``ok``; its other columns (requested, compiled,
applied, measured, tolerance) are shown as they are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import AnalysisError


@dataclass(frozen=True, slots=True)
class FidelityRow:
    """One compared quantity."""

    section: str
    columns: tuple[tuple[str, str], ...]
    ok: bool

    def __str__(self) -> str:
        return ", ".join(f"{name} {text}" for name, text in self.columns)


def read_fidelity(path: Path) -> tuple[FidelityRow, ...]:
    """Read all rows. Raises AnalysisError for anything that is not such a file."""
    try:
        content: object = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _fault(path, str(error)) from error
    if isinstance(content, list):
        return _rows(path, "links", content)
    if not isinstance(content, dict):
        raise _fault(path, "neither a list of rows nor an object of lists")
    rows: list[FidelityRow] = []
    for section, value in content.items():
        if isinstance(value, list):
            rows.extend(_rows(path, "links" if section == "rows" else str(section), value))
        elif isinstance(value, dict):
            raise _fault(path, f"section {section!r} is an object, not a list of rows")
        elif section == "ok":
            if not isinstance(value, bool):
                raise _fault(path, "'ok' is not true or false")
            rows.append(FidelityRow("all", (("what", "the lab as a whole"),), value))
    return tuple(rows)


def _rows(path: Path, section: str, values: list[object]) -> tuple[FidelityRow, ...]:
    rows: list[FidelityRow] = []
    for number, value in enumerate(values):
        if not isinstance(value, dict) or not isinstance(value.get("ok"), bool):
            raise _fault(path, f"row {number} of {section!r} has no boolean 'ok'")
        columns = tuple(
            (str(name), _text(cell)) for name, cell in value.items() if name != "ok" and cell != ""
        )
        rows.append(FidelityRow(section, columns, value["ok"]))
    return tuple(rows)


def _text(cell: object) -> str:
    if cell is None:
        return "n/a"
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return cell if isinstance(cell, str) else json.dumps(cell)


def _fault(path: Path, cause: str) -> AnalysisError:
    return AnalysisError(
        "read fidelity", str(path), cause, "calibrate the lab again; its record is not usable"
    )
