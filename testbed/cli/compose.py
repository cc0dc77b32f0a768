"""``testbed compose``: the Compose file for plain ``docker compose up``."""

from __future__ import annotations

from typing import Annotated

import typer

from testbed.errors import ExitStatus


def compose(
    scenario: Annotated[
        str | None, typer.Argument(help="Name or path of a scenario file; default: all profiles.")
    ] = None,
    net: Annotated[
        int, typer.Option(min=1, max=223, help="First number of all addresses.", metavar="NUMBER")
    ] = 10,
    gpu: Annotated[bool, typer.Option("--gpu", help="Print compose.gpu.yaml instead.")] = False,
) -> int:
    """Print compose.yaml: a scenario in containers that need no orchestrator.

    Without a scenario it is the file at the top of the project, with its profiles.
    """
    from testbed.run.up.file import compose_text, gpu_text

    print(gpu_text(scenario) if gpu else compose_text(scenario, net), end="")
    return int(ExitStatus.PASS)
