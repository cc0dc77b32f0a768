"""A table of the report room, printed in the terminal."""

from __future__ import annotations

from rich import box
from rich.table import Table as Printed
from rich.text import Text

from testbed.cli.app import console, for_tables
from testbed.report.table import Table


def print_table(table: Table) -> None:
    """Prints it with its notes."""
    printed = Printed(
        title=table.caption, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for place, head in enumerate(table.head):
        printed.add_column(
            head, justify="left" if place in (0, *table.worded) else "right",
            overflow="fold",
        )  # fmt: skip
    for row in table.rows:
        printed.add_row(*(Text(cell) for cell in row))
    for_tables(console).print(printed)
    for note in table.notes:
        console.print(note, markup=False)
