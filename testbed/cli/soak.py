"""``testbed soak``: random fault schedules over a scenario, counted, made small where they fail."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def soak(
    scenario: Annotated[str, typer.Argument(help="Name or path of a scenario file.")] = "soak",
    schedules: Annotated[int, typer.Option(min=1, help="Random schedules to run.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the schedules.")] = 1,
    minutes: Annotated[
        float | None, typer.Option(min=0, help="Wall time after which no run begins.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the soak.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at once; one a core.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the soak in --out.")] = False,
    kinds: Annotated[
        list[str] | None, typer.Option("--kind", help="Draw only this kind; may be repeated.")
    ] = None,
    shrink: Annotated[
        int, typer.Option(min=0, help="Most runs to make a finding small; 0 leaves it as it is.")
    ] = 30,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the folders of runs that pass.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Last line is soak.json.")] = False,
) -> int:
    """Put random faults on a scenario, over and over; make small what fails.

    Exit status: 0 every run passed; 1 a check failed; 2 usage; 3 a run was invalid; 4 unable.
    Requests that fail with a reason are no finding: faults do that.
    """
    from testbed.cli.app import console, errors
    from testbed.cli.printed import print_table
    from testbed.soak.campaign import Order, default_folder
    from testbed.soak.campaign import soak as run_soak

    order = Order(
        scenario, schedules, seed, out or default_folder(seed), minutes, jobs, resume,
        tuple(kinds or ()), shrink, keep,
    )  # fmt: skip
    found = run_soak(order, lambda words: errors.print(words, markup=False))
    for table in found.tables():
        print_table(table)
    console.print(found.in_words(), markup=False)
    console.print(f"summary: {order.out / 'soak.json'}", markup=False, soft_wrap=True)
    if as_json:
        print(found.model_dump_json())
    return int(found.exit_status)
