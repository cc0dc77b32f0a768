"""``testbed reproduce``: a published table or figure, beside what the lab measures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table as Printed
from rich.text import Text

from testbed.cli.app import console, for_tables
from testbed.errors import ExitStatus, UsageError
from testbed.report.table import Table
from testbed.reproduce.extent import Extent


def reproduce(
    name: Annotated[
        str | None, typer.Argument(help="Table or figure of the paper; --list names them.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Small: does it work, do findings show?")] = False,
    full: Annotated[bool, typer.Option(help="More seeds; of table2 also single changes.")] = False,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100,
            help="Runs of a point, a seed each; default: the study's. Points that the study "
            "gives a number of their own, such as single changes, keep it.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder; finished runs of the same plans in it are taken over."),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Say what can be reproduced.")] = False,
) -> int:
    """Reproduce a published table or figure: published and emulated side by side.

    Exit status: 0 faithful, and the named findings show; 1 one does not; 2 usage; 3 invalid;
    4 unable. Distance to published numbers never decides.
    """
    from testbed.reproduce.catalogue import TABLE2, known, study_of

    if listed:
        for each, title in known().items():
            console.print(f"{each}\t{title}", markup=False)
        return int(ExitStatus.PASS)
    if name is None:
        raise UsageError("reproduce", "nothing", "no table or figure is named", "add --list")
    if quick and full:
        raise UsageError(
            "reproduce", name, "--quick and --full exclude each other", "leave one of them out"
        )
    extent = Extent.QUICK if quick else Extent.FULL if full else Extent.NORMAL
    if name == TABLE2:
        return _table2(extent, seeds, out)
    study = study_of(name)
    from testbed.report.results import figure_tables
    from testbed.reproduce.perform import default_folder, perform

    done = perform(study, extent, seeds, out or default_folder(name), console)
    results = done.results
    for table in results.tables or figure_tables(results):
        show_table(table)
    for finding in results.findings:
        console.print(f"{finding.status.value}: {finding.claim} {finding.evidence}", markup=False)
        for line in finding.violations:
            console.print(f"  {line}", markup=False)
    for note in results.notes:
        console.print(note, markup=False)
    console.print(f"{results.status.value}: {results.words}", markup=False)
    console.print(f"page: {done.page}", markup=False, soft_wrap=True)
    return int(done.exit_status)


def _table2(extent: Extent, seeds: int | None, out: Path | None) -> int:
    from testbed.reproduce.perform import default_folder
    from testbed.reproduce.table2 import reproduce as reproduce_table2

    count = seeds or (10 if extent is Extent.FULL else 2)
    done = reproduce_table2(extent, count, out or default_folder("table2"), console)
    console.print(done.words, markup=False)
    console.print(f"page: {done.page}", markup=False, soft_wrap=True)
    console.print(f"smollm2-135m across the WAN answers: {done.answer!r}", markup=False)
    return int(done.status)


def show_table(table: Table) -> None:
    """Prints a table to the terminal."""
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
