"""The Azure format of 2023 and 2024: CSV with TIMESTAMP, ContextTokens, GeneratedTokens.

A timestamp is a date and a time of day (UTC) with up to 7 fractional digits, which is
100 ns; Python's own parser stops at 6. It may end in ``+00:00``. There are no block
ids and no sessions. (Source: the Azure public data set of LLM inference traces.)
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from testbed.workload.traces.lines import TOKENS_MAX, Lines, Parse, collect, fault
from testbed.workload.traces.table import Table, whole
from testbed.workload.traces.trace import Row, Trace

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
FRACTION_DIGITS = 7

_TIME = re.compile(
    r"(?P<moment>[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})"
    rf"(?:\.(?P<fraction>[0-9]{{1,{FRACTION_DIGITS}}}))?(?:\+00:00)?"
)


def load_azure(path: Path, take: int | None = None) -> Trace:
    """Read an Azure trace; see ``collect`` for bounds and errors."""
    return collect(path, take, _begin, 0)


def _begin(path: Path, lines: Lines) -> Parse:
    table = Table.read(path, lines, COLUMNS)

    def row(where: str, text: str) -> Row:
        fields = table.fields(where, text)
        return Row(
            at_ns=_nanoseconds(where, fields["TIMESTAMP"]),
            input_tokens=whole(where, fields, "ContextTokens", 1, TOKENS_MAX),
            output_tokens=whole(where, fields, "GeneratedTokens", 0, TOKENS_MAX),
        )

    return row


def _nanoseconds(where: str, text: str) -> int:
    found = _TIME.fullmatch(text)
    if found is None:
        raise fault(where, f"TIMESTAMP: {text[:40]!r} is not like 2023-11-16 18:15:46.6805900")
    try:
        moment = datetime.fromisoformat(found["moment"]).replace(tzinfo=UTC)
    except ValueError as cause:
        raise fault(where, f"TIMESTAMP: {text[:40]!r}: {cause}") from cause
    fraction = (found["fraction"] or "").ljust(9, "0")
    return int(moment.timestamp()) * 1_000_000_000 + int(fraction)
