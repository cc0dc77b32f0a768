"""Changes to the events of a sound run of the serving plane, and a look at what one check finds."""

from __future__ import annotations

from collections.abc import Callable

from testbed.checks import Case, Check, Finding, examine
from testbed.contract.event import Value
from tests.fakes.plane_run import Event

Change = Callable[[list[Event]], None]
NOBODY = -1
"""Stands for the request of an event that has none."""


def look(case: Case, check: Check) -> Finding:
    (finding,) = examine(case, (check,))
    return finding


def pick(events: list[Event], kind: str, req: int, node: str = "") -> Event:
    """The first event of a kind for a request (at a node)."""
    return next(
        one
        for one in events
        if one["kind"] == kind and one.get("req", NOBODY) == req and node in ("", one["node"])
    )


def put(kind: str, req: int, node: str = "", /, **fields: Value) -> Change:
    """Change fields of one event."""

    def change(events: list[Event]) -> None:
        pick(events, kind, req, node).update(fields)

    return change
