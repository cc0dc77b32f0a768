"""A table as data; the first column of each row is its heading."""

from __future__ import annotations

from testbed.contract.record import Record


class Table(Record):
    """A captioned table of text cells; ``marks`` gives a row its status colour."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    prose: bool = False
    """Whether cells are text that may wrap, rather than figures to be compared."""
