"""From logits to tokens: greedy, or seeded by Gumbel noise per position.

argmax(logits + Gumbel noise) is a draw from softmax(logits). The noise is a pure
function of (seed, request, position): neither batching nor a handoff nor a restart
shifts it, so that an output token depends on the logits and on nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch

from testbed_agents.model.protocol import Choice

_WORD_BYTES = 4


def gumbel_rows(seed: int, keys: Sequence[tuple[int, int]], size: int) -> torch.Tensor:
    """Standard Gumbel draws, fp64, one row per (request, position): ``[len(keys), size]``.

    SHAKE-128 of seed, request and position makes them: the same on every machine.
    """
    buffer = bytearray()
    for request, position in keys:
        name = f"{seed}/{request}/{position}".encode()
        buffer += hashlib.shake_128(name).digest(size * _WORD_BYTES)
    return _to_gumbel(buffer).view(len(keys), size)


def choose(scores: torch.Tensor) -> tuple[Choice, ...]:
    """The best token of each row of ``[n, vocabulary]`` and its lead over the second."""
    best, tokens = torch.topk(scores, 2, dim=-1)
    gaps: list[float] = (best[:, 0] - best[:, 1]).tolist()
    chosen: list[int] = tokens[:, 0].tolist()
    return tuple(Choice(token, gap) for token, gap in zip(chosen, gaps, strict=True))


def _to_gumbel(words: bytearray) -> torch.Tensor:
    """-log(-log(u)) with u = (word + 1/2) / 2**32, strictly inside (0, 1)."""
    signed = torch.frombuffer(words, dtype=torch.int32).to(torch.float64)
    uniform = (signed + (2.0**31 + 0.5)) / 2.0**32
    return -torch.log(-torch.log(uniform))
