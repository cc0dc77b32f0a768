"""The Qwen-Bailian format: one JSON object a line, with conversations.

A line holds ``chat_id``, ``parent_chat_id`` (-1 opens a conversation), ``timestamp``
(s), ``input_length`` and ``output_length`` (tokens), ``type``, ``turn`` (from 1) and
``hash_ids``: chained ids of 16-token blocks. (Source: the trace release of Alibaba
Cloud Bailian, USENIX ATC '25.) A session is a conversation, named by the chat that
opened it, or by the oldest known parent where the file begins later.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from testbed.workload.traces.lines import TOKENS_MAX, Lines, Parse, collect, fault, parsed
from testbed.workload.traces.trace import Row, Trace

BLOCK_TOKENS = 16
"""Tokens of one traced block."""
NO_PARENT = -1

_Id = Annotated[int, Field(ge=0, lt=2**63)]


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    chat_id: _Id
    parent_chat_id: Annotated[int, Field(ge=NO_PARENT, lt=2**63)]
    timestamp: Annotated[float, Field(ge=0, lt=2**33, allow_inf_nan=False)]
    input_length: Annotated[int, Field(ge=1, le=TOKENS_MAX)]
    output_length: Annotated[int, Field(ge=0, le=TOKENS_MAX)]
    type: str
    turn: Annotated[int, Field(ge=1, lt=2**31)]
    hash_ids: list[_Id]


def load_bailian(path: Path, take: int | None = None) -> Trace:
    """Read a Bailian trace; see ``collect`` for bounds and errors."""
    return collect(path, take, _begin, BLOCK_TOKENS)


def _begin(path: Path, lines: Lines) -> Parse:
    session_of: dict[int, int] = {}

    def row(where: str, text: str) -> Row:
        line = parsed(_Line, where, text)
        if line.chat_id in session_of:
            raise fault(where, f"chat_id {line.chat_id} stands on an earlier line too")
        if line.parent_chat_id == line.chat_id:
            raise fault(where, f"chat {line.chat_id} is its own parent")
        opens = line.parent_chat_id == NO_PARENT
        parent = line.parent_chat_id
        session = line.chat_id if opens else session_of.get(parent, parent)
        session_of[line.chat_id] = session
        return Row(
            at_ns=round(line.timestamp * 1e9),
            input_tokens=line.input_length,
            output_tokens=line.output_length,
            block_ids=line.hash_ids,
            session=session,
            turn=line.turn,
        )

    return row
