"""``testbed fault``: what a scenario can schedule, and runs that stand at a breakpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testbed.errors import ExitStatus, UsageError

fault = typer.Typer(
    no_args_is_help=True, help="Faults that a scenario can schedule, and runs that stand still."
)
Run = Annotated[Path, typer.Argument(help="Folder of a run that stands at a breakpoint.")]
LiveRun = Annotated[Path, typer.Argument(help="Folder of a run under way on the real clock.")]
Text = Annotated[
    str, typer.Argument(help="As in a scenario, without at: '{kind: down, link: wan1}'.")
]
Kind = Annotated[str, typer.Argument(help="A kind of fault, as `testbed fault list` names it.")]


@fault.command("list")
def list_() -> int:
    """List every kind of fault: its word, what it acts on, what it does."""
    from rich.table import Table

    from testbed.cli.app import console
    from testbed.scenario.ailments import OnAgents, OnPairs
    from testbed.scenario.injection import KINDS, kind_of
    from testbed.scenario.timed import OnLinks

    table = Table("kind", "acts on", "what happens")
    for kind in KINDS:
        target = "link" if issubclass(kind, OnLinks) else "node"
        target = "agent" if issubclass(kind, OnAgents) else target
        target = "pair" if issubclass(kind, OnPairs) else target
        table.add_row(kind_of(kind), target, (kind.__doc__ or "").partition("\n\n")[0])
    console.print(table)
    return int(ExitStatus.PASS)


@fault.command()
def show(kind: Kind) -> int:
    """Show the keys of one kind of fault, and an example."""
    from rich.table import Table

    from testbed.cli.app import console
    from testbed.scenario.injection import KINDS, keys_of, kind_of

    known = {kind_of(one): one for one in KINDS}
    if kind not in known:
        raise UsageError(
            "show a fault", kind, "there is no such kind", f"kinds: {', '.join(known)}"
        )
    table = Table("key", "needed", "meaning")
    for key in keys_of(known[kind]):
        table.add_row(key.name, "yes" if key.required else "", key.meaning)
    console.print((known[kind].__doc__ or "").strip())
    console.print(table)
    print(f"faults:\n  - {known[kind].EXAMPLE}")
    return int(ExitStatus.PASS)


@fault.command()
def apply(run: LiveRun, text: Text) -> int:
    """Let a fault begin now in a run under way on the real clock."""
    from testbed.cli.app import console
    from testbed.lab.guest.kernel.cache import cache_root
    from testbed.run.command import apply_fault

    name, answer = apply_fault(run, text, cache_root())
    console.print(f"{name}: in force at {answer.at_ns / 1e9:.3f} s", markup=False)
    return int(ExitStatus.PASS)


@fault.command()
def end(run: LiveRun, name: Annotated[str, typer.Argument(help="As `apply` called it.")]) -> int:
    """End a fault that was applied."""
    from testbed.cli.app import console
    from testbed.lab.guest.kernel.cache import cache_root
    from testbed.run.command import end_fault

    answer = end_fault(run, name, cache_root())
    console.print(f"{name}: over at {answer.at_ns / 1e9:.3f} s", markup=False)
    return int(ExitStatus.PASS)


@fault.command()
def look(run: Run) -> int:
    """Show links, pools and sockets of a run that stands at a breakpoint."""
    from testbed.cli.app import console
    from testbed.cli.printed import print_table
    from testbed.contract.breakpoint import picture_path, standing
    from testbed.report.standing import standing_tables

    picture = standing(run)
    if picture is None:
        raise _not_standing("look at a run", run)
    for table in standing_tables(run, picture):
        print_table(table)
    where = picture_path(run, picture.at_ns)
    console.print(f"every socket: {where}", markup=False, soft_wrap=True)
    return int(ExitStatus.PASS)


@fault.command()
def go(run: Run) -> int:
    """Let a run that stands at a breakpoint go on."""
    from testbed.contract.breakpoint import go_on

    if not go_on(run):
        raise _not_standing("go on", run)
    return int(ExitStatus.PASS)


def _not_standing(attempt: str, run: Path) -> UsageError:
    return UsageError(
        attempt, str(run), "it does not stand at a breakpoint",
        "name breakpoints in the scenario, and the run's folder while it stands at one",
    )  # fmt: skip
