"""A plan as text for ``testbed plan``: what would be run, and what it would take.

Cells are ``Text``, never bare strings: rich would read ``[…]`` of an author as markup.
"""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from testbed.contract.plan import Plan
from testbed.plan.summary import describe

MIB = 2**20
GIB = 2**30


def render(plan: Plan) -> RenderableType:
    """Tables of facts, agents, links and the estimate; print with ``rich``."""
    return Group(_facts(plan), _agents(plan), _links(plan), _estimate(plan))


def _facts(plan: Plan) -> Table:
    title = Text(f"{plan.scenario}, seed {plan.seed}", style="table.title")
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column("what", no_wrap=True)
    table.add_column("value", overflow="fold")
    _row(table, "lab", f"{plan.lab}, clock {plan.clock}, on {plan.host}")
    for key, value in plan.summary:
        _row(table, key, value)
    return table


def _agents(plan: Plan) -> Table:
    table = Table(title="agents", title_justify="left")
    for heading in ("name", "role", "address", "model"):
        table.add_column(heading)
    for agent in plan.agents:
        _row(table, agent.node, agent.role.value, agent.address, agent.model.name)
    return table


def _links(plan: Plan) -> Table:
    table = Table(title="links", title_justify="left")
    table.add_column("name", no_wrap=True)
    table.add_column("ends", no_wrap=True)
    table.add_column("each way", overflow="fold")
    for link in plan.network.links:
        _row(table, link.name, f"{link.a.node} - {link.b.node}", describe(link.forward))
    return table


def _estimate(plan: Plan) -> Table:
    wanted = plan.estimate
    table = Table(title="estimate (one core)", show_header=False, title_justify="left")
    table.add_column("what", no_wrap=True)
    table.add_column("value", justify="right")
    _row(table, "wall time", f"{wanted.wall_s:.0f} s")
    _row(table, "virtual time", f"at most {wanted.virtual_s:.0f} s")
    _row(table, "payload", f"{wanted.payload_bytes / GIB:.2f} GiB")
    _row(table, "host memory", f"{wanted.host_memory_bytes / MIB:.0f} MiB")
    _row(table, "guest memory (mem=)", f"{wanted.guest_memory_bytes / MIB:.0f} MiB")
    _row(table, "disk", f"{wanted.disk_bytes / MIB:.0f} MiB")
    return table


def _row(table: Table, *cells: str) -> None:
    table.add_row(*(Text(cell) for cell in cells))
