"""The page of a reproduction."""

from __future__ import annotations

import os
from pathlib import Path

from testbed.report import wording
from testbed.report.chart import Chart
from testbed.report.comparison_tables import RunLink
from testbed.report.page import render, write_page
from testbed.report.results import Results, RunRow, figure_tables
from testbed.report.table import Table

RUN_HEAD = ("run", "seed", "requests", "failed", "WAN load", "wall", "verdict")


def write_results_page(results: Results, charts: tuple[Chart, ...], out: Path) -> Path:
    """Writes the page to the file ``out``; links to the runs are relative to it."""
    return write_page(out, results_page(results, charts, out.parent))


def results_page(results: Results, charts: tuple[Chart, ...], folder: Path) -> str:
    """The page as text, to be kept in ``folder``."""
    return render(
        "results.html.j2",
        charts,
        {
            "title": results.title,
            "question": results.question,
            "extent": results.extent,
            "status": results.status,
            "words": results.words,
            "figures": figure_tables(results),
            "tables": results.tables,
            "findings": results.findings,
            "notes": results.notes,
            "assumptions": results.assumptions,
            "variants": Table(
                caption="What was run",
                head=("variant", "what it is"),
                rows=tuple(results.variants.items()),
                prose=True,
            ),
            "run_head": RUN_HEAD,
            "runs": tuple(_link(run, folder) for run in results.runs),
            "timelines": Table(
                caption="Timelines",
                head=("run", "SHA-256"),
                rows=tuple(
                    (f"{run.variant}, seed {run.seed}", run.timeline_sha256 or wording.NOTHING)
                    for run in results.runs
                ),
                prose=True,
            ),
        },
    )


def _link(run: RunRow, folder: Path) -> RunLink:
    report = Path(run.folder) / "report.html"
    return RunLink(
        name=run.variant,
        href=os.path.relpath(report, folder) if report.exists() else "",
        cells=(
            str(run.seed),
            wording.count(run.offered),
            wording.count(run.failed),
            wording.share(run.offered_load),
            wording.seconds(run.wall_s),
        ),
        status=run.status.value,
    )
