"""``testbed fault``: which faults a scenario can schedule, and how each is written."""

from __future__ import annotations

from typing import Annotated

import typer

from testbed.errors import ExitStatus, UsageError

fault = typer.Typer(no_args_is_help=True, help="Faults that a scenario can schedule.")
Kind = Annotated[str, typer.Argument(help="A kind of fault, as `testbed fault list` names it.")]


@fault.command("list")
def list_() -> int:
    """List every kind of fault: its word, what it acts on, what it does."""
    from rich.table import Table

    from testbed.cli.app import console
    from testbed.scenario.ailments import OnAgents, OnPairs
    from testbed.scenario.injection import KINDS, OnLinks, kind_of

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
