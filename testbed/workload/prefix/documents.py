"""Prompts that begin with a part of a shared document and go on alone.

::

    document 0   ├──────────────── longest ────────────────┤
    request 5    ├─ hit ─┤├─ own segment ─┤
    request 9    ├──────── hit ────────┤├─ own ─┤

The hit rates are those of the draw, so that a Beta, a uniform or a fixed distribution
becomes real shared prefixes. They are met exactly by a cache that holds the documents
from the start (``whole_documents``); a cold cache first has to see a document's parts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testbed.contract.agent import Span
from testbed.errors import PlanError
from testbed.workload.prefix.keys import Prompt

Column = NDArray[np.int64]
LEAST_OWN_BLOCKS = 1
"""A prompt's last block is never cached: an engine needs its output for the first token."""


def document_prompts(
    input_tokens: Column,
    hit_tokens: Column,
    documents: int,
    block_tokens: int,
    draw: np.random.Generator,
) -> tuple[Prompt, ...]:
    """One prompt a request, its document chosen evenly by ``draw``.

    Hits are rounded down to whole blocks and leave at least one block uncached.
    Documents are segments 0 to ``documents - 1``; request i owns ``documents + i``.

    Args:
        input_tokens: whole blocks each, at least one.
        hit_tokens: tokens shared with the document.

    Raises:
        PlanError: there is no document, or an input is not a whole number of blocks.
    """
    if documents < 1:
        raise PlanError("share documents", f"{documents}", "at least 1 is needed", "use count 1")
    total, rest = np.divmod(input_tokens, block_tokens)
    if rest.any() or (total < LEAST_OWN_BLOCKS).any():
        raise PlanError(
            "share documents", "input lengths", f"are not whole blocks of {block_tokens} tokens"
        )
    hits = np.clip(hit_tokens // block_tokens, 0, total - LEAST_OWN_BLOCKS) * block_tokens
    chosen = draw.integers(0, documents, input_tokens.size)
    return tuple(
        (
            *((Span(segment=document, tokens=hit),) if hit else ()),
            Span(segment=documents + index, tokens=tokens - hit),
        )
        for index, (document, hit, tokens) in enumerate(
            zip(chosen.tolist(), hits.tolist(), input_tokens.tolist(), strict=True)
        )
    )


def whole_documents(documents: int, tokens: int) -> tuple[Prompt, ...]:
    """The documents themselves, ``tokens`` long: what a warm cache holds at the start."""
    return tuple((Span(segment=document, tokens=tokens),) for document in range(documents))
