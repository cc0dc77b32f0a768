"""How long prompts and answers are, in emulated tokens.

Prompts come out in whole cache blocks, answers in single tokens (every output token
is a real one). Bounds cut a distribution's tail by holding its values at the bound,
so that the mean lies a little below the stated one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from testbed.errors import PlanError
from testbed.scenario.workload import InputLength, OutputLength
from testbed.workload.traces import Trace

Lengths = NDArray[np.int64]


def input_lengths(
    length: InputLength,
    block_tokens: int,
    count: int,
    trace: Trace | None,
    draw: np.random.Generator,
) -> Lengths:
    """Prompt lengths, rounded down to whole blocks (at least one).

    Raises:
        PlanError: a fixed length is not a whole number of blocks.
    """
    if length.kind == "fixed" and length.tokens.count % block_tokens:
        lower = length.tokens.count // block_tokens * block_tokens
        raise PlanError(
            "draw input lengths",
            f"{length.tokens.count} tokens",
            f"is not a whole number of {block_tokens}-token blocks",
            f"use {lower or block_tokens} or {lower + block_tokens} tokens",
        )
    drawn = _draw(length, count, None if trace is None else trace.input_tokens, draw)
    return np.maximum(1, drawn // block_tokens) * block_tokens


def output_lengths(
    length: OutputLength, count: int, trace: Trace | None, draw: np.random.Generator
) -> Lengths:
    """Answer lengths in tokens, at least one."""
    drawn = _draw(length, count, None if trace is None else trace.output_tokens, draw)
    return np.maximum(1, drawn)


def _draw(
    length: InputLength | OutputLength,
    count: int,
    traced: Lengths | None,
    draw: np.random.Generator,
) -> Lengths:
    match length.kind:
        case "fixed":
            if length.tokens.count < 1:
                raise PlanError("draw lengths", "0 tokens", "a length is at least 1 token")
            return np.full(count, length.tokens.count, dtype=np.int64)
        case "uniform":
            low, high = length.low.count, length.high.count
            return draw.integers(low, high, count, endpoint=True, dtype=np.int64)
        case "geometric":
            drawn = draw.geometric(1.0 / length.mean.count, count).astype(np.int64)
            return np.minimum(drawn, length.high.count)
        case "lognormal":
            sigma = math.sqrt(2.0 * math.log(length.mean.count / length.median.count))
            real = draw.lognormal(math.log(length.median.count), sigma, count)
            bounded = np.clip(np.rint(real), length.low.count, length.high.count)
            return bounded.astype(np.int64)
        case "trace":
            if traced is None:
                raise PlanError(
                    "draw lengths", "kind trace", "no trace was loaded", "name it in arrivals"
                )
            return np.minimum(traced[:count], length.high.count)
