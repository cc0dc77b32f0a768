"""The results of a study as a value: the same in its JSON, CSV, page and terminal."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from testbed.checks.finding import Finding, Status
from testbed.contract.record import Record
from testbed.report import wording
from testbed.report.page import write_page
from testbed.report.table import Table


class ResultRow(Record):
    """One figure of one variant or contrast, in the SI unit that its name ends in."""

    variant: str
    words: str
    measure: str
    label: str
    n: int
    mean: float
    low: float | None = None
    """Lower end of the interval; None with one seed."""
    high: float | None = None
    by_seed: dict[int, float]
    published: float | None = None
    source: str = ""
    """Where the published figure stands."""
    against: str = ""
    """Variant that a sensitivity row is compared with."""
    times: float | None = None
    """Mean over common seeds of this value over that of ``against``."""


class RunRow(Record):
    """One run of the study."""

    variant: str
    seed: int
    folder: str
    status: Status
    words: str
    offered: int | None
    failed: int | None = None
    """Requests of the window that were not answered."""
    offered_load: float | None
    wall_s: float | None
    timeline_sha256: str | None


class Results(Record):
    """Everything that a reproduction found."""

    schema_version: int = 1
    name: str
    title: str
    question: str
    extent: str
    interval: str
    status: Status
    rows: tuple[ResultRow, ...]
    findings: tuple[Finding, ...]
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    variants: dict[str, str]
    """Label to what it is: scenario and overrides."""
    runs: tuple[RunRow, ...]
    tables: tuple[Table, ...] = ()

    @property
    def words(self) -> str:
        """What came of it, in a sentence or two."""
        broken = [f for f in self.findings if f.decides and f.status is not Status.PASS]
        if not broken:
            return "Every run is faithful and passes its checks, and every finding shows."
        return "Not shown: " + " ".join(f"{f.claim} ({f.status.value})" for f in broken)


_CSV = (
    "variant", "measure", "n", "mean", "low", "high", "published", "source", "against", "times",
)  # fmt: skip


def write_results(folder: Path, results: Results) -> None:
    """Writes ``<name>.json`` and ``<name>.csv``, each whole or not at all."""
    write_page(folder / f"{results.name}.json", results.model_dump_json(indent=1) + "\n")
    lines = io.StringIO(newline="")
    writer = csv.DictWriter(lines, _CSV, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(row.model_dump() for row in results.rows)
    write_page(folder / f"{results.name}.csv", lines.getvalue())


def figure_tables(results: Results) -> tuple[Table, ...]:
    """Published beside measured: one table of the main rows, one of the sensitivity rows."""
    main = [row for row in results.rows if not row.against]
    others = [row for row in results.rows if row.against]
    tables = [
        Table(
            caption="Published and measured",
            head=("variant", "figure", "published", "measured", "interval", "n", "source"),
            rows=tuple(
                (
                    row.variant, row.label,
                    "" if row.published is None else wording.quantity(row.measure, row.published),
                    wording.quantity(row.measure, row.mean), _interval(row), str(row.n), row.source,
                )
                for row in main
            ),
            worded=(1, 6),
            notes=(
                f"Measured: mean over n seeds. Interval: {results.interval}. Published figures "
                "are references, never thresholds.",
            ),
        )
    ]  # fmt: skip
    if others:
        tables.append(
            Table(
                caption="Sensitivity: one change at a time",
                head=("variant", "figure", "measured", "interval", "n", "against", "times"),
                rows=tuple(
                    (
                        row.variant, row.label, wording.quantity(row.measure, row.mean),
                        _interval(row), str(row.n), row.against,
                        "" if row.times is None else f"x {row.times:.3g}",
                    )
                    for row in others
                ),
                worded=(1,),
                notes=("Times: value over that of the variant it changes, at the same seeds.",),
            )
        )  # fmt: skip
    return tuple(tables)


def _interval(row: ResultRow) -> str:
    if row.low is None or row.high is None:
        return "one seed"
    return f"{wording.quantity(row.measure, row.low)} to {wording.quantity(row.measure, row.high)}"
