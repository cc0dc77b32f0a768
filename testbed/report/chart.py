"""A chart as data: what is drawn, in words and numbers; colours are roles, not values.

The page's script draws charts with Plotly, in the colours of the reader's light or dark
scheme. Each chart also carries a sentence for those who do not see it and a table.
"""

from __future__ import annotations

from typing import Literal

from testbed.contract.record import Record
from testbed.report.table import Table

Colour = Literal["one", "two", "three", "four", "quiet"]


class Trace(Record):
    """One line or cloud of points."""

    name: str
    colour: Colour
    x: tuple[float, ...]
    y: tuple[float, ...]
    mode: Literal["lines", "markers", "lines+markers"] = "lines"
    dash: Literal["solid", "dash", "dot"] = "solid"
    step: bool = False
    fill: bool = False
    symbol: Literal["circle", "diamond", "x"] = "circle"
    low: tuple[float, ...] = ()
    """Lower ends of error bars; empty means none."""
    high: tuple[float, ...] = ()


class Axis(Record):
    """One axis; ``unit`` is appended to hovered values."""

    title: str
    log: bool = False
    percent: bool = False
    zero: bool = False
    """Whether the axis starts at zero."""


class Band(Record):
    """A shaded span of the x axis."""

    begin: float
    end: float
    label: str
    fault: bool = False
    """Whether something was broken on purpose then; drawn in another colour."""


class Rule(Record):
    """A horizontal line with a label."""

    y: float
    label: str


class Chart(Record):
    """One chart of the page; ``id`` is its anchor."""

    id: str
    title: str
    alt: str
    """The chart in one sentence, with its key figures."""
    note: str = ""
    """How to read it."""
    x: Axis
    y: Axis
    traces: tuple[Trace, ...]
    bands: tuple[Band, ...] = ()
    rules: tuple[Rule, ...] = ()
    table: Table
