"""From drawn columns to prompts with structure, and what their structure makes of the draw.

A session's prompt grows from turn to turn and its hits follow, so both columns come
back changed; shared documents keep the drawn ones, up to one uncached block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testbed.errors import PlanError
from testbed.scenario.workload import Workload
from testbed.workload.prefix import (
    Prompt,
    document_prompts,
    expected_hits,
    session_prompts,
    traced_prompts,
    whole_documents,
)
from testbed.workload.stream import stream
from testbed.workload.traces import Trace

Column = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Structured:
    """One entry a request. ``hit_shares`` are what one cache without bound would give."""

    spans: Sequence[Prompt]
    input_tokens: Column
    hit_shares: NDArray[np.float64]
    session: Column | None = None


def structured(
    workload: Workload,
    block_tokens: int,
    input_tokens: Column,
    hit_shares: NDArray[np.float64],
    output_tokens: Column,
    trace: Trace | None,
    seed: int,
) -> Structured:
    """The prompts that ``workload.prompts`` asks for.

    Raises:
        PlanError: the lengths and the kind of prompts do not go together.
    """
    asked = workload.prompts
    held: Sequence[Prompt] = ()
    session: Column | None = None
    match asked.kind:
        case "documents":
            # The surplus is that of raw_sizes: a share that means whole blocks loses none.
            blocks = np.floor(input_tokens // block_tokens * hit_shares + 1e-9)
            spans = document_prompts(
                input_tokens,
                blocks.astype(np.int64) * block_tokens,
                asked.count,
                block_tokens,
                stream(seed, "documents"),
            )
            held = whole_documents(asked.count, int(input_tokens.max()))
        case "sessions":
            drawn = session_prompts(
                input_tokens,
                output_tokens,
                asked.sessions,
                asked.turns,
                asked.system.count,
                asked.high.count,
                block_tokens,
                stream(seed, "sessions"),
            )
            spans, session = drawn.prompts, drawn.session
        case "trace":
            if trace is None:
                raise PlanError(
                    "make prompts", "kind trace", "no trace was loaded", "name it in arrivals"
                )
            spans = traced_prompts(trace, input_tokens, block_tokens)
    total = np.array([sum(span.tokens for span in prompt) for prompt in spans], dtype=np.int64)
    hits = np.array(expected_hits(spans, block_tokens, held), dtype=np.int64)
    shares = hits * block_tokens / total
    return Structured(spans=spans, input_tokens=total, hit_shares=shares, session=session)
