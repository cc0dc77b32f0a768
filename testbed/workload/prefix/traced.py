"""The shared prefixes of a trace, cut into our blocks.

::

    trace, 4 tokens a block   [ 11     ][ 12     ][ 15     ]      chained ids
    ours, 2 tokens a block    [0.0][0.1][1.0][1.1][2.0][2.1]      segment.index
    trace, 2 tokens a block   [11][12][15][16]
    ours, 4 tokens a block    [ 12   ][ 16   ]

A chained id stands for the whole prefix up to the end of its block. A block of ours is
therefore named by the id of the traced block in which it ends: equal ids then are equal
prefixes. What a traced block holds is not known, so where the two sizes do not divide
each other a block may count as different that is not; never the other way round.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from testbed.contract.agent import Span
from testbed.errors import PlanError
from testbed.workload.prefix.keys import Prompt
from testbed.workload.traces import Trace

Column = NDArray[np.int64]


def traced_prompts(trace: Trace, input_tokens: Column, block_tokens: int) -> tuple[Prompt, ...]:
    """The prompt of each of the first ``input_tokens.size`` requests of ``trace``.

    Segments are the trace's ids, numbered in order of appearance; blocks without an id
    (some formats leave out the last, partial one) make a segment of their own.

    Args:
        input_tokens: wanted lengths in whole blocks; at most the trace's own, or one block.

    Raises:
        PlanError: the trace has no block ids or too few requests, or a length is not
            whole blocks or is longer than the trace's.
    """
    if trace.block_tokens == 0:
        raise PlanError(
            "take prompts from a trace",
            "the trace",
            "its format has no block ids",
            "use prompts of kind documents or sessions, or a Mooncake or Bailian trace",
        )
    if input_tokens.size > trace.input_tokens.size:
        raise PlanError("take prompts from a trace", "the trace", "it has too few requests")
    longest = np.maximum(trace.input_tokens[: input_tokens.size], block_tokens)
    if (input_tokens % block_tokens).any() or not (
        (input_tokens >= block_tokens) & (input_tokens <= longest)
    ).all():
        raise PlanError(
            "take prompts from a trace",
            "input lengths",
            f"are not whole {block_tokens}-token blocks within the trace's lengths",
        )
    _, first, place = np.unique(trace.block_ids, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    numbered = rank[place] if first.size else trace.block_ids
    starts = trace.block_from if trace.block_from is not None else np.zeros(1, dtype=np.int64)
    prompts: list[Prompt] = []
    for index, tokens in enumerate(input_tokens.tolist()):
        ids = numbered[starts[index] : starts[index + 1]]
        ends = np.arange(1, tokens // block_tokens + 1) * block_tokens
        ends = np.minimum(ends, trace.input_tokens[index])
        within = (ends + trace.block_tokens - 1) // trace.block_tokens - 1
        own = first.size + index
        known = within < ids.size
        named = np.full(within.size, own, dtype=np.int64)
        named[known] = ids[within[known]]
        prompts.append(
            tuple(
                Span(segment=segment, tokens=block_tokens * len(list(run)))
                for segment, run in groupby(named.tolist())
            )
        )
    return tuple(prompts)
