"""``testbed doctor``: what this machine can run, what is missing, how to add it."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table
from rich.text import Text

from testbed.errors import ExitStatus
from testbed.host.finding import Finding, Level, judge
from testbed.host.machine import read_machine
from testbed.host.support import State, Support, default_works, support

_COLOURS = {
    Level.OK.value: "green",
    Level.WARN.value: "yellow",
    Level.ABSENT.value: "dim",
    Level.MISSING.value: "red",
    State.WORKS.value: "green",
    State.PLANNED.value: "dim",
}


def doctor(as_json: bool = False, console: Console | None = None) -> ExitStatus:
    """Examines this machine and prints the result.

    Returns:
        PASS if the default lab and clock work here, else UNABLE.
    """
    findings = judge(read_machine())
    rows = support(findings)
    out = console or Console(emoji=False)
    if as_json:
        out.print(report_json(findings, rows), soft_wrap=True, highlight=False, markup=False)
    else:
        out.print(modes_table(rows))
        out.print(findings_table(findings))
        for finding in _first(findings):
            out.print(f"next: {finding.remedy}", soft_wrap=True, highlight=False, markup=False)
    return ExitStatus.PASS if default_works(rows) else ExitStatus.UNABLE


def report_json(findings: tuple[Finding, ...], rows: tuple[Support, ...]) -> str:
    """The same as one line of JSON."""
    return json.dumps(
        {
            "modes": [
                {
                    "lab": row.mode.lab,
                    "clock": row.mode.clock,
                    "on": row.mode.on,
                    "state": row.state.value,
                    "missing": [fact.value for fact in row.missing],
                    "remedy": row.remedy,
                }
                for row in rows
            ],
            "findings": [
                {
                    "fact": finding.fact.value,
                    "level": finding.level.value,
                    "detail": finding.detail,
                    "remedy": finding.remedy,
                }
                for finding in findings
            ],
        }
    )


def modes_table(rows: tuple[Support, ...]) -> Table:
    """One row for each lab and clock."""
    table = Table("lab", "clock", "on", "state", "missing", "add it with", title="Labs and clocks")
    for row in rows:
        missing = ", ".join(fact.value for fact in row.missing)
        state = _coloured(row.state.value)
        table.add_row(row.mode.lab, row.mode.clock, row.mode.on, state, missing, Text(row.remedy))
    return table


def findings_table(findings: tuple[Finding, ...]) -> Table:
    """One row for each fact."""
    table = Table("fact", "level", "found", "remedy", title="This machine")
    for finding in findings:
        level = _coloured(finding.level.value)
        table.add_row(finding.fact.value, level, Text(finding.detail), Text(finding.remedy))
    return table


def _coloured(word: str) -> Text:
    return Text(word, style=_COLOURS.get(word, "red"))


def _first(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The most urgent thing that the guest needs, so that there is one next step."""
    needed = support(findings)[0].missing
    return tuple(f for f in findings if f.fact in needed and f.remedy)[:1]
