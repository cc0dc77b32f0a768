"""A study: what is run, what is read from it, what the paper says, what must show.

::

    Study ── variants(extent) ──▶ Variant x seeds ──▶ runs ──▶ Outcomes
      ├─ measures    one figure of one run          ──▶ rows: n, mean, interval
      ├─ contrasts   two variants, seed by seed     ──▶ rows
      ├─ published   figures beside the rows; never thresholds
      ├─ claims      named qualitative findings     ──▶ pass, fail or invalid
      └─ charts, tables, notes                      ──▶ the page

A study is data and pure functions; ``testbed.reproduce.perform`` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from testbed.report.chart import Chart
from testbed.report.table import Table
from testbed.reproduce.extent import Extent
from testbed.reproduce.outcome import Outcomes, RunOutcome

Source = Literal["text", "note", "derived"]
"""The paper's running text; two independent public notes on its tables; computed from those."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One thing that is run.

    Attributes:
        label: names its folders (``<label>-s<seed>``) and its rows; lower case and hyphens.
        words: what it is, for people.
        overrides: as after ``--set``, applied to ``scenario``.
        seeds: how many, from 1 on; None takes the study's number.
        against: label of the variant that this one changes: makes it a sensitivity variant,
            whose rows also say how many times the other's value it has at the same seeds.
        excused: names of checks that may fail in its runs, and ``requests-failed`` where
            requests may. Invalid is never excused.
        tuned: overrides that depend on the seed, after ``overrides``; None for none.
    """

    label: str
    scenario: str
    words: str
    overrides: tuple[str, ...] = ()
    seeds: int | None = None
    against: str = ""
    excused: tuple[str, ...] = ()
    tuned: Callable[[int], tuple[str, ...]] | None = None

    def overrides_of(self, seed: int) -> tuple[str, ...]:
        """All overrides of the run with this seed."""
        return (*self.overrides, *(() if self.tuned is None else self.tuned(seed)))


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of one run.

    Attributes:
        name: dotted name of ``metrics.json``; with ``read`` any name whose end says the
            unit (``_s``, ``_share``, ``_fraction``, ``bytes``).
        label: for people.
        read: computes it from a run; None where it does not apply.
        only: labels of the variants that have it; empty means all.
    """

    name: str
    label: str
    read: Callable[[RunOutcome], float | None] | None = None
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Contrast:
    """A figure of two variants, computed seed by seed on their common seeds.

    ``compute(value, base)`` gives it from the measure's values of ``variant`` and ``base``.
    """

    name: str
    label: str
    variant: str
    base: str
    measure: str
    compute: Callable[[float, float], float]


@dataclass(frozen=True, slots=True)
class Published:
    """A published figure in the SI unit of ``measure``, beside the row of ``variant``.

    ``variant`` may also be the name of a contrast; ``measure`` is then empty.
    """

    variant: str
    measure: str
    value: float
    source: Source
    where: str


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of a claim: the figures it rests on and what speaks against it."""

    evidence: str
    against: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """A named qualitative finding. ``judge`` may raise AnalysisError: invalid, with its cause.

    ``quick`` is False for what a quick run is too small to show; it is left out there.
    """

    name: str
    words: str
    judge: Callable[[Outcomes], Judged]
    quick: bool = True


def nothing(outcomes: Outcomes) -> tuple[()]:
    """No charts, no tables of its own, no notes."""
    return ()


@dataclass(frozen=True, slots=True)
class Study:
    """One reproduction.

    Attributes:
        name: on the command line.
        title, question: heading of the page, and what it asks in a sentence or two.
        seeds: of a variant that does not say otherwise, by extent.
        tables: shown first, in the terminal instead of the table of all figures.
        notes: what was found beyond rows and claims, and what does not reproduce and why.
    """

    name: str
    title: str
    question: str
    variants: Callable[[Extent], tuple[Variant, ...]]
    measures: tuple[Measure, ...]
    claims: tuple[Claim, ...]
    assumptions: tuple[str, ...]
    contrasts: tuple[Contrast, ...] = ()
    published: tuple[Published, ...] = ()
    charts: Callable[[Outcomes], tuple[Chart, ...]] = nothing
    tables: Callable[[Outcomes], tuple[Table, ...]] = nothing
    notes: Callable[[Outcomes], tuple[str, ...]] = nothing
    seeds: dict[Extent, int] | None = None

    def seed_count(self, extent: Extent, variant: Variant, asked: int | None) -> int:
        """Seeds of a variant; ``asked`` (``--seeds``) goes before the study's number."""
        if variant.seeds is not None:
            return variant.seeds
        return asked or (self.seeds or _SEEDS)[extent]


_SEEDS = {Extent.QUICK: 1, Extent.NORMAL: 3, Extent.FULL: 10}
