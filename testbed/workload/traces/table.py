"""A CSV file with a header: fields by column name, whole numbers within bounds."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from testbed.workload.traces.lines import Lines, fault

_WHOLE = re.compile(r"[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class Table:
    """The header of one file; other columns than the named ones may stand in it."""

    header: tuple[str, ...]

    @classmethod
    def read(cls, path: Path, lines: Lines, needed: tuple[str, ...]) -> Table:
        """Take the header off ``lines``.

        Raises:
            PlanError: there is none, a needed column is missing or one stands twice.
        """
        where, text = next(lines, (f"{path}:1", ""))
        header = tuple(name.strip().removeprefix("\ufeff") for name in _split(where, text))
        missing = [name for name in needed if name not in header]
        if missing:
            raise fault(where, f"the header lacks the column {missing[0]}")
        if len(set(header)) < len(header):
            raise fault(where, "the header names a column twice")
        return cls(header)

    def fields(self, where: str, text: str) -> dict[str, str]:
        """One line by column name."""
        values = _split(where, text)
        if len(values) != len(self.header):
            raise fault(where, f"has {len(values)} fields, the header {len(self.header)}")
        return dict(zip(self.header, (value.strip() for value in values), strict=True))


def whole(where: str, fields: dict[str, str], name: str, low: int, high: int) -> int:
    """The whole number in column ``name``, at least ``low`` and at most ``high``."""
    text = fields[name]
    if not _WHOLE.fullmatch(text) or not low <= int(text) <= high:
        raise fault(where, f"{name}: {text[:40]!r} is no whole number from {low} to {high:,}")
    return int(text)


def _split(where: str, text: str) -> list[str]:
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error as cause:
        raise fault(where, str(cause)) from cause
