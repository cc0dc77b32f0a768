"""A request trace as columns, whatever file it came from.

::

    at_ns          0      0      12 ms            one entry a request, ascending
    input_tokens   1200   1000   1536
    block_ids      1 2 3  1 2    1 5 3            chained: an equal id is an equal prefix
    block_from     0      3      5      8         request i holds ids [from i, from i + 1)
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Row:
    """One request as a file gives it. ``at_ns`` counts from whatever the file counts from."""

    at_ns: int
    input_tokens: int
    output_tokens: int
    block_ids: Sequence[int] = ()
    session: int | None = None
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """Columns of a trace, one entry a request, in order of arrival.

    ``at_ns`` counts from the first request. ``hit_tokens`` is the hit of an unbounded
    cache, at most ``input_tokens``. What the format does not have is None.
    """

    at_ns: Column
    input_tokens: Column
    output_tokens: Column
    hit_tokens: Column | None = None
    block_tokens: int = 0
    """Tokens of one traced block; 0 where the format has no block ids."""
    block_ids: Column = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    block_from: Column | None = None
    session: Column | None = None
    turn: Column | None = None
    skipped: int = 0
    """Rows that were left out because they record a failure."""

    def blocks_of(self, index: int) -> Column:
        """The chained block ids of request ``index``; empty where the format has none."""
        if self.block_from is None:
            return self.block_ids[:0]
        return self.block_ids[self.block_from[index] : self.block_from[index + 1]]


def columns(rows: Sequence[Row], block_tokens: int, skipped: int = 0) -> Trace:
    """Rows in order of arrival (at least one) as columns.

    Sessions and turns become columns only if every row has them. An answer of 0 tokens
    counts as 1: the first token always is generated.
    """
    first_ns = rows[0].at_ns
    sessions = [row.session for row in rows if row.session is not None]
    turns = [row.turn for row in rows if row.turn is not None]
    ids, starts = array("q"), array("q", (0,))
    for row in rows:
        ids.extend(row.block_ids)
        starts.append(len(ids))
    return Trace(
        at_ns=np.array([row.at_ns - first_ns for row in rows], dtype=np.int64),
        input_tokens=np.array([row.input_tokens for row in rows], dtype=np.int64),
        output_tokens=np.array([max(1, row.output_tokens) for row in rows], dtype=np.int64),
        hit_tokens=_hits(rows, block_tokens) if block_tokens else None,
        block_tokens=block_tokens,
        block_ids=np.array(ids, dtype=np.int64),
        block_from=np.array(starts, dtype=np.int64) if block_tokens else None,
        session=np.array(sessions, dtype=np.int64) if len(sessions) == len(rows) else None,
        turn=np.array(turns, dtype=np.int64) if len(turns) == len(rows) else None,
        skipped=skipped,
    )


def _hits(rows: Sequence[Row], block_tokens: int) -> Column:
    """Tokens of the longest run of leading ids that any earlier request held."""
    seen: set[int] = set()
    hits: list[int] = []
    for row in rows:
        hits.append(min(row.input_tokens, block_tokens * _leading(row.block_ids, seen)))
        seen.update(row.block_ids)
    return np.array(hits, dtype=np.int64)


def _leading(ids: Sequence[int], seen: set[int]) -> int:
    """Number of leading ids that were seen before; ids are chained, so a set is a radix tree."""
    for index, block in enumerate(ids):
        if block not in seen:
            return index
    return len(ids)
