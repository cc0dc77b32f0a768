"""Chained block keys, and the hits that a cache without bound would give.

::

    prompt   [ segment 0, 3 blocks ][ segment 7, 2 blocks ]
    blocks     0.0   0.1   0.2        7.0   7.1
    keys       k0 ─► k1 ─► k2 ──────► k3 ─► k4          k = H(key before, segment, index)

Equal keys mean equal prefixes. A key is a pure function of what stands before it, so
that every process of a run gets the same one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
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


def expected_hits(
    prompts: Iterable[Prompt], block_tokens: int, held: Sequence[Prompt] = ()
) -> list[int]:
    """Leading blocks of each prompt that ``held`` or an earlier prompt began with.

    What one cache without bound gives if every prompt is in it before the next comes.
    It follows spans in place of blocks, because two prompts share a block of a span only
    if all spans before it are equal: the work is that of the spans, not of the tokens.

    Raises:
        PlanError: a span is not a whole number of blocks.
    """
    known: dict[tuple[int, int], int] = {}
    nodes: dict[tuple[int, int, int], int] = {}
    for prompt in held:
        _enter(prompt, block_tokens, known, nodes)
    return [_enter(prompt, block_tokens, known, nodes) for prompt in prompts]


def blocks_of(span: Span, block_tokens: int) -> int:
    """Number of blocks of a span, which must be whole."""
    if span.tokens % block_tokens:
        raise PlanError(
            "cut a prompt into blocks",
            f"segment {span.segment}",
            f"its {span.tokens} tokens are not a whole number of {block_tokens}-token blocks",
        )
    return span.tokens // block_tokens


def _enter(
    prompt: Prompt,
    block_tokens: int,
    known: dict[tuple[int, int], int],
    nodes: dict[tuple[int, int, int], int],
) -> int:
    """Put ``prompt`` in; the blocks that were there before.

    Args:
        known: most blocks of (node, segment) that any prompt held.
        nodes: the node behind (node, segment, blocks); node 0 is the root.
    """
    node, hit, whole = 0, 0, True
    for span in prompt:
        blocks = blocks_of(span, block_tokens)
        held = known.get((node, span.segment), 0)
        if whole:
            hit += min(held, blocks)
            whole = held >= blocks
        if held < blocks:
            known[node, span.segment] = blocks
        node = nodes.setdefault((node, span.segment, blocks), len(nodes) + 1)
    return hit
