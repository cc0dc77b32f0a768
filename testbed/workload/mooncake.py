"""Request traces in the Mooncake format: one JSON object a line.

A line holds ``timestamp`` (ms), ``input_length`` and ``output_length`` (tokens) and
``hash_ids``: chained ids of 512-token blocks, so that an equal id means an equal
prefix up to that block. (Source: the trace release of Mooncake, FAST '25.) The hit
of a request is the longest run of leading ids that any earlier request of the trace
held: what a cache without eviction would give.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from testbed.errors import PlanError

BLOCK_TOKENS = 512
"""Tokens of one traced block."""
ROWS_MAX = 1_000_000
LINE_MAX = 256 * 1024
"""Longest line in characters; a prompt of 4 million tokens needs about 80 KiB."""

Column = NDArray[np.int64]
_Length = Annotated[int, Field(ge=1, le=2**30)]
_BlockId = Annotated[int, Field(ge=0, lt=2**63)]


@dataclass(frozen=True, slots=True)
class Trace:
    """Columns of a trace, one entry a request, in order of arrival.

    ``at_ns`` counts from the first request; ``hit_tokens`` is at most ``input_tokens``.
    """

    at_ns: Column
    input_tokens: Column
    output_tokens: Column
    hit_tokens: Column


class _Row(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    timestamp: Annotated[float, Field(ge=0, lt=2**53, allow_inf_nan=False)]
    input_length: _Length
    output_length: Annotated[int, Field(ge=0, le=2**30)]
    hash_ids: list[_BlockId]


def load_trace(path: Path, take: int | None = None) -> Trace:
    """Read ``path``; only its first ``take`` rows if given.

    An answer of 0 tokens counts as 1 (the first token always is generated).

    Raises:
        PlanError: the file cannot be read, is empty or too long, or a line is wrong;
            the message names file and line.
    """
    rows = _rows(path, take)
    if not rows:
        raise _fault(str(path), "holds no request")
    first_ms = rows[0].timestamp
    seen: set[int] = set()
    hits: list[int] = []
    for row in rows:
        hits.append(min(row.input_length, BLOCK_TOKENS * _leading(row.hash_ids, seen)))
        seen.update(row.hash_ids)
    return Trace(
        at_ns=np.array([round((row.timestamp - first_ms) * 1e6) for row in rows], dtype=np.int64),
        input_tokens=np.array([row.input_length for row in rows], dtype=np.int64),
        output_tokens=np.array([max(1, row.output_length) for row in rows], dtype=np.int64),
        hit_tokens=np.array(hits, dtype=np.int64),
    )


def _leading(ids: list[int], seen: set[int]) -> int:
    """Number of leading ids that were seen before; ids are chained, so a set is a radix tree."""
    for index, block in enumerate(ids):
        if block not in seen:
            return index
    return len(ids)


def _rows(path: Path, take: int | None) -> list[_Row]:
    rows: list[_Row] = []
    number = 0
    try:
        with path.open(encoding="utf-8") as stream:
            while take is None or len(rows) < take:
                text = stream.readline(LINE_MAX + 1)
                number += 1
                if not text:
                    break
                where = f"{path}:{number}"
                if len(text) > LINE_MAX:
                    raise _fault(where, f"is longer than {LINE_MAX} characters")
                if not text.strip():
                    continue
                if len(rows) == ROWS_MAX:
                    raise _fault(where, f"is beyond {ROWS_MAX:,} requests", "set take")
                rows.append(_row(text, where, rows[-1].timestamp if rows else 0.0))
    except (OSError, UnicodeDecodeError) as cause:
        raise _fault(f"{path}:{number + 1}", str(cause)) from cause
    return rows


def _row(text: str, where: str, previous_ms: float) -> _Row:
    try:
        row = _Row.model_validate_json(text)
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise _fault(where, f"{key}: {first['msg']}" if key else first["msg"]) from fault
    if row.timestamp < previous_ms:
        raise _fault(where, f"timestamp {row.timestamp:g} lies before {previous_ms:g}", "sort it")
    if len(row.hash_ids) > -(-row.input_length // BLOCK_TOKENS):
        raise _fault(
            where,
            f"{len(row.hash_ids)} hash_ids are more than the {BLOCK_TOKENS}-token blocks "
            f"of {row.input_length} tokens",
        )
    return row


def _fault(where: str, cause: str, remedy: str = "see the format in docs/scenario.md") -> PlanError:
    return PlanError("load trace", where, cause, remedy)
