"""Published figures, looked up by the name of the scenario that reproduces them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import Field
from ruamel.yaml import YAML

from testbed.contract.record import Record


class PublishedFigure(Record):
    """One number in the SI unit of ``metric``, and whether text or a note states it."""

    metric: str
    value: float
    source: Literal["text", "note"]


class PublishedRow(Record):
    """One row of a published table."""

    scenario: str
    title: str
    conditions: str
    figures: tuple[PublishedFigure, ...] = Field(min_length=1)

    def value(self, metric: str) -> float | None:
        """Return the published number for a metric, None where there is none."""
        return next((f.value for f in self.figures if f.metric == metric), None)


class _Published(Record):
    rows: tuple[PublishedRow, ...]


@cache
def published_rows() -> tuple[PublishedRow, ...]:
    """Read the data file of this package."""
    text = files("testbed.report").joinpath("published.yaml").read_text(encoding="utf-8")
    return _Published.model_validate(YAML(typ="safe", pure=True).load(text)).rows


def published_for(scenario: str) -> PublishedRow | None:
    """Return the row that a scenario reproduces, None where it reproduces none."""
    return next((row for row in published_rows() if row.scenario == scenario), None)
