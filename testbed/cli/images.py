"""``testbed images``: the two container images of this tree."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from testbed.cli.app import console, errors, for_tables
from testbed.errors import ExitStatus
from testbed.lab.compose.wheels import Torch

images = typer.Typer(help="Container images of this tree.", no_args_is_help=True)
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable.")]


@images.command("build")
def build(
    base: Annotated[
        str,
        typer.Option(
            metavar="IMAGE|debian|local",
            help="Base image, or make one: from a package mirror, or from this machine's packages.",
        ),
    ] = "",
    torch: Annotated[Torch, typer.Option(help="Build of torch in the image agent.")] = Torch.CPU,
    as_json: AsJson = False,
) -> int:
    """Build the images router and agent; what is there already is found. compose.yaml finds them.

    Uses the Engine of DOCKER_HOST or of the usual socket; root needs none running.
    """
    from testbed.lab.compose.engine import usable_engine
    from testbed.lab.compose.images import build_images, name_for_compose
    from testbed.lab.guest.kernel.cache import cache_root

    with usable_engine(cache_root(), _say) as engine:
        made = build_images(engine, cache_root(), _say, base, torch)
        name_for_compose(engine, made, torch)
    if as_json:
        print(json.dumps([
            {"target": i.target, "name": i.name, "id": i.id, "bytes": i.size_bytes,
             "built": i.built}
            for i in made
        ]))  # fmt: skip
    else:
        for image in made:
            size, how = f"{image.size_bytes / 1e6:.0f} MB", "built" if image.built else "found"
            console.print(f"{image.name}  {size}  {how}", markup=False, emoji=False)
    return int(ExitStatus.PASS)


@images.command("list")
def list_(as_json: AsJson = False) -> int:
    """List the images that were built here, of this tree and of earlier ones."""
    from testbed.lab.compose.engine import usable_engine
    from testbed.lab.compose.images import list_images
    from testbed.lab.guest.kernel.cache import cache_root

    with usable_engine(cache_root(), _say) as engine:
        stored = list_images(engine)
    if as_json:
        print(json.dumps([
            {"names": i.names, "id": i.id, "bytes": i.size_bytes, "labels": dict(i.labels)}
            for i in stored
        ]))  # fmt: skip
        return int(ExitStatus.PASS)
    if not stored:
        console.print("no image was built yet: testbed images build")
        return int(ExitStatus.PASS)
    table = Table("image", "size", "id")
    for image in stored:
        name = ", ".join(image.names)
        table.add_row(
            name, f"{image.size_bytes / 1e6:.0f} MB", image.id.removeprefix("sha256:")[:12]
        )
    for_tables(console).print(table)
    return int(ExitStatus.PASS)


def _say(text: str) -> None:
    errors.print(text, markup=False, emoji=False)
