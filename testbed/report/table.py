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
    worded: tuple[int, ...] = ()
    """Columns of words, counted from 0: set to the left, and wrapped where the page is narrow."""
    prose: bool = False
    """Whether cells are text that may wrap, rather than figures to be compared."""
