"""Chained block keys: what a prefix cache knows of a prompt.

::

    prompt   [ segment 0, 3 blocks ][ segment 7, 2 blocks ]
    blocks     0.0   0.1   0.2        7.0   7.1
    keys       k0 ─► k1 ─► k2 ──────► k3 ─► k4          k = H(key before, segment, index)

Equal keys mean equal prefixes. A key is a pure function of what stands before it, so
that every process of a run gets the same one.
"""

from __future__ import annotations

import struct
from hashlib import blake2b

from testbed.contract.agent import Span
from testbed.errors import PlanError

Prompt = tuple[Span, ...]
ROOT = 0
"""The key before the first block."""

_PACKED = struct.Struct("<QQQ")


def chained(key: int, segment: int, index: int) -> int:
    """The 64-bit key of block ``index`` of ``segment``, after ``key``."""
    digest = blake2b(_PACKED.pack(key, segment, index), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def block_keys(prompt: Prompt, block_tokens: int) -> list[int]:
    """The key of every block of ``prompt``, in order.

    Raises:
        PlanError: a span is not a whole number of blocks.
    """
    key, keys = ROOT, []
    for span in prompt:
        for index in range(blocks_of(span, block_tokens)):
            key = chained(key, span.segment, index)
            keys.append(key)
    return keys


def blocks_of(span: Span, block_tokens: int) -> int:
    """Number of blocks of a span, which must be whole."""
    if span.tokens % block_tokens:
        raise PlanError(
            "cut a prompt into blocks",
            f"segment {span.segment}",
            f"its {span.tokens} tokens are not a whole number of {block_tokens}-token blocks",
        )
    return span.tokens // block_tokens
