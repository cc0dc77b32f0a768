"""Rows of a calibration as one table a direction of a link."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from testbed.cli.app import for_tables
from testbed.fidelity.row import CalibrationRow

_HEADS = ("quantity", "requested", "compiled", "applied", "measured", "tolerance", "ok")


def print_rows(rows: Sequence[CalibrationRow], console: Console | None = None) -> None:
    """Prints every row; ``console`` is standard output unless another is given."""
    out = for_tables(console or Console(highlight=False, emoji=False))
    for (link, direction), group in groupby(rows, key=lambda row: (row.link, row.direction)):
        out.print(_table(f"{link} {direction}", list(group)))


def _table(title: str, rows: Sequence[CalibrationRow]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for head in _HEADS:
        table.add_column(head, overflow="fold")
    for row in rows:
        words = (
            row.quantity, row.requested, row.compiled, row.applied, row.measured, row.tolerance,
            "ok" if row.ok else "WRONG",
        )  # fmt: skip
        table.add_row(*(Text(word) for word in words), style=None if row.ok else "red")
    return table
