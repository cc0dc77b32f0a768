"""KV rows by blocks: what a prefix cache keeps for each, and how a prompt is put together.

A value of the cache is a *piece*: one block's rows inside rows that came together. A
prompt joins neighbours of one origin into one segment again, so that attention does
not go block by block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from testbed.contract.agent import Shape
from testbed_agents.cache import RadixCache
from testbed_agents.model.engine import Engine
from testbed_agents.model.kv import Kv
from testbed_agents.model.prompt import Prompts
from testbed_agents.serving.prompt import read_prompt


@dataclass(frozen=True, slots=True)
class Piece:
    """Block ``index`` of ``rows``, which hold whole blocks."""

    rows: Kv
    index: int


def pieces(rows: Kv, block: int) -> tuple[Piece, ...]:
    """All blocks of ``rows``; ``block`` is in real tokens."""
    return tuple([Piece(rows, index) for index in range(rows.length // block)])


def join(empty: Kv, parts: Iterable[Piece], block: int) -> Kv:
    """The rows of all parts in order, shared, not copied."""
    joined = empty
    for origin, begin, end in _runs(parts):
        joined = joined.join(origin.part(begin * block, end * block))
    return joined


def block_bytes(parts: Sequence[Piece], block: int) -> tuple[memoryview, ...]:
    """The bytes of each block, in order."""
    return tuple([part.rows.block_bytes(part.index, block) for part in parts])


def load_documents(
    cache: RadixCache[Piece],
    model: Engine,
    prompts: Prompts,
    shape: Shape,
    documents: Iterable[tuple[int, int]],
) -> None:
    """Lets whole documents enter a cache, as if they had been asked before."""
    block = shape.block_tokens // shape.ratio
    for segment, tokens in documents:
        document = read_prompt(prompts, shape, -1, (segment,), (tokens,))
        rows = model.prefill(document.tokens)
        cache.publish(document.keys, pieces(rows, block))


def _runs(parts: Iterable[Piece]) -> list[tuple[Kv, int, int]]:
    """Neighbours of one origin as (rows, first block, block behind the last)."""
    runs: list[tuple[Kv, int, int]] = []
    for part in parts:
        if runs and runs[-1][0] is part.rows and runs[-1][2] == part.index:
            runs[-1] = (part.rows, runs[-1][1], part.index + 1)
        else:
            runs.append((part.rows, part.index, part.index + 1))
    return runs
