"""``testbed calibrate``: the links of a topology or profile, or a real model on this machine."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from testbed.cli.app import Overrides, console, errors
from testbed.errors import ExitStatus, UsageError


class DeviceName(StrEnum):
    """What a model is measured on."""

    CPU = "cpu"
    CUDA = "cuda"


def calibrate(
    name: Annotated[
        str | None, typer.Argument(help="Name of a topology or of a tc profile.")
    ] = None,
    overrides: Overrides = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the links; default: 1.")] = None,
    quick: Annotated[bool, typer.Option(help="Rate and delay with few frames only.")] = False,
    model: Annotated[
        str | None, typer.Option(help="A real model, in place of links: nano or smollm2-135m.")
    ] = None,
    device: Annotated[DeviceName, typer.Option(help="Where the model runs.")] = DeviceName.CPU,
    runs: Annotated[int, typer.Option(help="Timed runs of each point of a model.")] = 5,
    out: Annotated[
        Path | None, typer.Option(help="Run folder, or with --model the profile; must not exist.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> int:
    """Measure links (requested, applied, measured), or with --model write a hardware profile."""
    if (name is None) == (model is None):
        raise UsageError(
            "calibrate", name or "nothing", "it takes either a name or --model",
            "name a topology or a tc profile, or give --model and --out",
        )  # fmt: skip
    if model is not None:
        if overrides or seed is not None or quick or as_json:
            raise UsageError(
                "calibrate the model", model, "--set, --seed, --quick and --json are for links",
                "leave them out",
            )  # fmt: skip
        return _model(model, device, runs, out)
    return _links(str(name), tuple(overrides or ()), seed, quick, out, as_json)


def _links(
    name: str, overrides: tuple[str, ...], seed: int | None, quick: bool, out: Path | None,
    as_json: bool,
) -> int:  # fmt: skip
    from testbed.cli.calibration_table import print_rows
    from testbed.fidelity.calibrate import Effort
    from testbed.run.calibrate import calibrate as measure
    from testbed.run.calibrate import prepare_calibration

    effort = Effort.QUICK if quick else Effort.FULL
    prepared = prepare_calibration(name, effort, overrides, seed)
    links = len(prepared.order.network.links)
    with errors.status(f"measuring {links} links of {prepared.title} in the lab guest"):
        done = measure(prepared, out)
    if as_json:
        print(json.dumps([row.model_dump() for row in done.rows]))
    else:
        print_rows(done.rows)
        console.print(done.in_words(), markup=False)
        console.print(f"rows: {done.folder / 'fidelity.json'}", markup=False, soft_wrap=True)
    return int(done.exit_status)


def _model(model: str, device: DeviceName, runs: int, out: Path | None) -> int:
    from testbed.run.calibrate_model import calibrate_model

    if out is None:
        raise UsageError("calibrate the model", model, "--out is missing", "give --out FILE.yaml")
    with errors.status(f"measuring {model} on {device.value}"):
        done = calibrate_model(model, device.value, out, runs)
    for residual in done.residuals:
        console.print(str(residual), markup=False)
    console.print(f"profile: {done.path}", markup=False, soft_wrap=True)
    return int(ExitStatus.PASS)
