"""The BurstGPT format: CSV with times in seconds and request and response tokens.

Columns: Timestamp, Model, Request tokens, Response tokens, Total tokens, Log Type;
later releases add others, of which ``Session ID`` is read where it is a number.
A row with 0 response tokens records a failed request: it is skipped and counted.
There are no block ids. (Source: the BurstGPT data set.)
"""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

from testbed.workload.traces.lines import TOKENS_MAX, Lines, Parse, collect, fault
from testbed.workload.traces.table import Table, whole
from testbed.workload.traces.trace import Row, Trace

COLUMNS = (
    "Timestamp", "Model", "Request tokens", "Response tokens", "Total tokens", "Log Type",
)  # fmt: skip
SESSION = "Session ID"

_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def load_burstgpt(path: Path, take: int | None = None) -> Trace:
    """Read a BurstGPT trace; see ``collect`` for bounds and errors."""
    return collect(path, take, _begin, 0)


def _begin(path: Path, lines: Lines) -> Parse:
    table = Table.read(path, lines, COLUMNS)

    def row(where: str, text: str) -> Row | None:
        fields = table.fields(where, text)
        asked = whole(where, fields, "Request tokens", 0, TOKENS_MAX)
        answered = whole(where, fields, "Response tokens", 0, TOKENS_MAX)
        total = whole(where, fields, "Total tokens", 0, 2 * TOKENS_MAX)
        at_ns = _nanoseconds(where, fields["Timestamp"])
        if asked + answered != total:
            raise fault(where, f"Total tokens: {total} is not {asked} + {answered}")
        if answered == 0:
            return None
        if asked == 0:
            raise fault(where, "Request tokens: 0 tokens were answered")
        session = fields.get(SESSION, "")
        return Row(
            at_ns=at_ns,
            input_tokens=asked,
            output_tokens=answered,
            session=whole(where, fields, SESSION, 0, 2**63 - 1) if session.isdigit() else None,
        )

    return row


def _nanoseconds(where: str, text: str) -> int:
    if not _SECONDS.fullmatch(text):
        raise fault(where, f"Timestamp: {text[:40]!r} is no number of seconds like 5 or 5.25")
    return int(Decimal(text) * 1_000_000_000)
