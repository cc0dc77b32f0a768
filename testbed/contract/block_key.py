"""Chained block keys: what a prefix cache knows of a prompt.

::

    prompt   [ segment 0, 3 blocks ][ segment 7, 2 blocks ]
    blocks     0.0   0.1   0.2        7.0   7.1
    keys       k0 ─► k1 ─► k2 ──────► k3 ─► k4          k = H(key before, segment, index)

H is BLAKE2b with 8 bytes (RFC 7693). The real tokens of a segment are a prefix-stable
function of the run's seed, so equal keys mean equal real prefixes within a run, in every
process of it (Python's own ``hash`` would differ). Two of n different prefixes collide with
a chance of n^2 / 2^65: 1e-8 for half a million blocks.
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
        PlanError: a span is not a whole number of blocks, or a block has no tokens.
    """
    key, keys = ROOT, []
    for span in prompt:
        for index in range(blocks_of(span, block_tokens)):
            key = chained(key, span.segment, index)
            keys.append(key)
    return keys


def blocks_of(span: Span, block_tokens: int) -> int:
    """Number of blocks of a span, which must be whole."""
    if block_tokens < 1:
        raise PlanError(
            "cut a prompt into blocks", f"segment {span.segment}", "a block has at least one token"
        )
    if span.tokens % block_tokens:
        raise PlanError(
            "cut a prompt into blocks",
            f"segment {span.segment}",
            f"its {span.tokens} tokens are not a whole number of {block_tokens}-token blocks",
        )
    return span.tokens // block_tokens
