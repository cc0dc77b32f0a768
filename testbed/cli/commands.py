"""The commands; each resolves its arguments and calls one room."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from testbed.cli.app import Overrides, console, errors
from testbed.cli.calibrate import calibrate
from testbed.cli.compose import compose
from testbed.cli.fault import fault
from testbed.cli.images import images
from testbed.cli.progress import progress_bar
from testbed.cli.reproduce import reproduce
from testbed.cli.soak import soak
from testbed.errors import ExitStatus


class LabName(StrEnum):
    """Where agents live."""

    MININET = "mininet"
    COMPOSE = "compose"


class ClockName(StrEnum):
    """Which clock the lab runs on."""

    VIRTUAL = "virtual"
    REAL = "real"


class HostName(StrEnum):
    """Which kernel carries the lab."""

    GUEST = "guest"
    HOST = "host"


ScenarioArgument = Annotated[str, typer.Argument(help="Name or path of a scenario file.")]
Seed = Annotated[int | None, typer.Option(help="Seed of the run; default: the scenario's.")]
Lab = Annotated[
    LabName | None, typer.Option(help="Where agents live: namespaces of Mininet, or containers.")
]
Clock = Annotated[
    ClockName | None,
    typer.Option(help="Clock of the lab; with real at the scale of the scenario's real_time."),
]
Scaled = Annotated[
    bool, typer.Option("--scaled", help="The scale of real_time under the virtual clock, too.")
]
On = Annotated[
    HostName | None,
    typer.Option(help="Kernel that carries the lab; the virtual clock needs guest."),
]


def _say(words: str) -> None:
    errors.print(words, markup=False)


def run(
    scenario: ScenarioArgument,
    lab: Lab = None,
    clock: Clock = None,
    on: On = None,
    at_scale: Scaled = False,
    seed: Seed = None,
    overrides: Overrides = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; must not exist.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Last line is metrics.json.")] = False,
    memory: Annotated[str | None, typer.Option(help="Guest memory; default: planned.")] = None,
    stuck_after: Annotated[
        str, typer.Option(help="Wall time without any progress after which the run is ended.")
    ] = "120 s",
) -> int:
    """Run a scenario and judge it.

    Exit status: 0 pass, 1 fail, 2 usage, 3 invalid, 4 unable, 130 interrupted.
    """
    from testbed.plan.dimension import scale_words
    from testbed.run.execute import Tuning, execute
    from testbed.run.prepare import prepare

    prepared = prepare(
        scenario, tuple(overrides or ()), seed, _lab(lab), _clock(clock), _on(on),
        place=out or Path("runs"), at_scale=at_scale,
    )  # fmt: skip
    tuning = Tuning.parse(memory, stuck_after)
    for line in scale_words(prepared.plan):
        _say(line)
    with progress_bar(prepared.plan, errors) as watch:
        finished = execute(prepared, out, watch, tuning, _say)
    console.print(f"{finished.verdict.verdict.value}: {finished.verdict.in_words()}", markup=False)
    console.print(f"report: {finished.folder / 'report.html'}", markup=False, soft_wrap=True)
    if as_json:
        print(json.dumps(finished.metrics))
    return int(finished.verdict.exit_status)


def plan(
    scenario: ScenarioArgument,
    lab: Lab = None,
    clock: Clock = None,
    on: On = None,
    at_scale: Scaled = False,
    seed: Seed = None,
    overrides: Overrides = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> int:
    """Print the resolved plan with estimated wall time, memory and disk; touch nothing."""
    from testbed.plan import render
    from testbed.run.prepare import prepare

    prepared = prepare(
        scenario, tuple(overrides or ()), seed, _lab(lab), _clock(clock), _on(on),
        at_scale=at_scale,
    )  # fmt: skip
    if as_json:
        print(prepared.plan.model_dump_json(indent=1))
    else:
        console.print(render(prepared.plan))
    return int(ExitStatus.PASS)


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> int:
    """Say per lab and clock what works here, what is missing and how to add it."""
    from testbed.host.doctor import doctor as examine

    return int(examine(as_json, console))


def report(folder: Annotated[Path, typer.Argument(help="A run folder.")]) -> int:
    """Redo the analysis of a run from its events: metrics, verdict, report."""
    from testbed.run.again import analyse_again

    finished = analyse_again(folder)
    console.print(f"{finished.verdict.verdict.value}: {finished.verdict.in_words()}", markup=False)
    console.print(f"report: {folder / 'report.html'}", markup=False, soft_wrap=True)
    return int(finished.verdict.exit_status)


def transfers(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    out: Annotated[Path, typer.Argument(help="File to write: .csv or .parquet.")],
) -> int:
    """Write one row per transfer: size, hit share, wait, duration, and what the oracle says."""
    from testbed.metrics.tail import transfer_rows, write_table

    rows = transfer_rows(folder)
    write_table(out, rows)
    console.print(f"{len(rows)} transfers: {out}", markup=False, soft_wrap=True)
    return int(ExitStatus.PASS)


def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would do.")] = False,
) -> int:
    """Undo what a killed command left: only what our ledgers name, and only of dead processes.

    Run folders are evidence: one that did not reach its end is marked as interrupted, never
    removed. Runs that go on are left alone.
    """
    from testbed.lab.guest.kernel.cache import cache_root
    from testbed.run.gc import collect, refuse_failures

    deeds = []
    for deed in collect(cache_root(), dry_run):
        deeds.append(deed)
        console.print(str(deed), markup=False)
    if not deeds:
        console.print("nothing was left behind")
    refuse_failures(deeds)
    return int(ExitStatus.PASS)


kernel = typer.Typer(help="The lab kernel.", no_args_is_help=True)


@kernel.command("build")
def kernel_build(
    source: Annotated[
        Path | None, typer.Option(help="Kernel source tree or tarball, 6.6 or later.")
    ] = None,
) -> int:
    """Build the lab kernel once; later calls find it."""
    from testbed.lab.guest.kernel.build import build_kernel
    from testbed.lab.guest.kernel.progress import ProgressLine

    progress = ProgressLine()
    try:
        print(build_kernel(source, progress))
    finally:
        progress.close()
    return int(ExitStatus.PASS)


@kernel.command("path")
def kernel_path() -> int:
    """Print the path of the built kernel."""
    from testbed.run.execute import lab_kernel

    print(lab_kernel().linux)
    return int(ExitStatus.PASS)


def register(app: typer.Typer) -> None:
    """Adds every command to the application."""
    for command in (run, plan, calibrate, doctor, report, transfers, reproduce, soak, compose, gc):
        app.command()(command)
    app.add_typer(kernel, name="kernel")
    app.add_typer(images, name="images")
    app.add_typer(fault, name="fault")


def _lab(value: LabName | None) -> Literal["mininet", "compose"] | None:
    return None if value is None else value.value


def _clock(value: ClockName | None) -> Literal["virtual", "real"] | None:
    return None if value is None else value.value


def _on(value: HostName | None) -> Literal["guest", "host"] | None:
    return None if value is None else value.value
