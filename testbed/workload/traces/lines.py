"""Reading a trace file line by line, within bounds; every fault names file and line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from testbed.errors import PlanError
from testbed.workload.traces.trace import Row, Trace, columns

ROWS_MAX = 1_000_000
BLOCKS_MAX = 20_000_000
"""Block ids of a whole trace; more do not fit into memory beside a run."""
LINE_MAX = 256 * 1024
"""Longest line in characters; a prompt of 4 million tokens needs about 80 KiB."""
TOKENS_MAX = 2**30
"""Longest prompt or answer."""

Lines = Iterator[tuple[str, str]]
"""Pairs of ``file:line`` and the text of that line."""
RowT = TypeVar("RowT", bound=BaseModel)
Parse = Callable[[str, str], Row | None]
"""From ``file:line`` and text to a row; None is a recorded failure, which is skipped."""


def fault(where: str, cause: str, remedy: str = "see the formats in docs/scenario.md") -> PlanError:
    """What a loader raises; ``where`` is ``file:line``."""
    return PlanError("load trace", where, cause, remedy)


def collect(
    path: Path, take: int | None, begin: Callable[[Path, Lines], Parse], block_tokens: int
) -> Trace:
    """Read a whole file, or its first ``take`` requests that are not failures.

    Args:
        begin: reads what stands before the first request (a header), gives the parser.
        block_tokens: tokens of one block id of the format; 0 if it has none.

    Raises:
        PlanError: the file cannot be read, is empty or too long, or a line is wrong.
    """
    rows: list[Row] = []
    skipped = blocks = 0
    lines = _lines(path)
    parse = begin(path, lines)
    while take is None or len(rows) < take:
        where, text = next(lines, ("", ""))
        if not where:
            break
        row = parse(where, text)
        if row is None:
            skipped += 1
            continue
        blocks += len(row.block_ids)
        _check(where, row, rows, blocks, block_tokens)
        rows.append(row)
    if not rows:
        raise fault(str(path), f"holds no request; {skipped} rows are failures")
    return columns(rows, block_tokens, skipped)


def parsed(model: type[RowT], where: str, text: str) -> RowT:
    """One JSON line as ``model``."""
    try:
        return model.model_validate_json(text)
    except ValidationError as cause:
        first = cause.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise fault(where, f"{key}: {first['msg']}" if key else first["msg"]) from cause


def _lines(path: Path) -> Lines:
    number = 0
    try:
        with path.open(encoding="utf-8") as stream:
            while text := stream.readline(LINE_MAX + 1):
                number += 1
                if len(text) > LINE_MAX:
                    raise fault(f"{path}:{number}", f"is longer than {LINE_MAX} characters")
                if text.strip():
                    yield f"{path}:{number}", text
    except (OSError, UnicodeDecodeError) as cause:
        raise fault(f"{path}:{number + 1}", str(cause)) from cause


def _check(where: str, row: Row, rows: list[Row], blocks: int, block_tokens: int) -> None:
    if len(rows) == ROWS_MAX:
        raise fault(where, f"is beyond {ROWS_MAX:,} requests", "set take")
    if blocks > BLOCKS_MAX:
        raise fault(where, f"is beyond {BLOCKS_MAX:,} block ids", "set take")
    if rows and row.at_ns < rows[-1].at_ns:
        early_s = (rows[-1].at_ns - row.at_ns) / 1e9
        raise fault(where, f"its timestamp lies before the last one's, by {early_s:g} s", "sort it")
    if block_tokens and len(row.block_ids) > -(-row.input_tokens // block_tokens):
        raise fault(
            where,
            f"{len(row.block_ids)} hash_ids are more than the {block_tokens}-token blocks "
            f"of {row.input_tokens} tokens",
        )
