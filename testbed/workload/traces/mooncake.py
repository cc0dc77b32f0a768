"""The Mooncake format: one JSON object a line.

A line holds ``timestamp`` (ms), ``input_length`` and ``output_length`` (tokens) and
``hash_ids``: chained ids of 512-token blocks, so that an equal id means an equal
prefix up to that block. (Source: the trace release of Mooncake, FAST '25.)
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from testbed.workload.traces.lines import TOKENS_MAX, Lines, Parse, collect, parsed
from testbed.workload.traces.trace import Row, Trace

BLOCK_TOKENS = 512
"""Tokens of one traced block."""


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    timestamp: Annotated[float, Field(ge=0, lt=2**43, allow_inf_nan=False)]
    input_length: Annotated[int, Field(ge=1, le=TOKENS_MAX)]
    output_length: Annotated[int, Field(ge=0, le=TOKENS_MAX)]
    hash_ids: list[Annotated[int, Field(ge=0, lt=2**63)]]


def load_mooncake(path: Path, take: int | None = None) -> Trace:
    """Read a Mooncake trace; see ``collect`` for bounds and errors."""
    return collect(path, take, _begin, BLOCK_TOKENS)


def _begin(path: Path, lines: Lines) -> Parse:
    return _row


def _row(where: str, text: str) -> Row:
    line = parsed(_Line, where, text)
    return Row(
        at_ns=round(line.timestamp * 1e6),
        input_tokens=line.input_length,
        output_tokens=line.output_length,
        block_ids=line.hash_ids,
    )
