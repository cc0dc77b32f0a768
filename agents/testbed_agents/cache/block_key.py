"""Keys of cache blocks: one 64-bit number for a block and everything before it.

``key[i] = H(key[i - 1], segment, index of the block in its segment)``, H = BLAKE2b with 8
bytes (RFC 7693). The real tokens of a segment are a prefix-stable function of the run's
seed, so equal keys mean equal real prefixes within a run. Python's own ``hash`` would differ
between processes. Two of n different prefixes collide with a chance of n^2 / 2^65: 1e-8 for
half a million blocks.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable

_INPUT = struct.Struct("<QQQ")
_ROOT = 0


def chain_keys(spans: Iterable[tuple[int, int]], block_tokens: int) -> tuple[int, ...]:
    """The keys of a prompt's blocks, in order.

    Args:
        spans: (segment, emulated tokens), in order; each is the beginning of its segment.
        block_tokens: emulated tokens of a block.

    Raises:
        ValueError: a span is empty, not a whole number of blocks, or its segment is not
            below 2**63.
    """
    if block_tokens < 1:
        raise ValueError("a block has at least one token")
    pack, digest, number = _INPUT.pack, hashlib.blake2b, int.from_bytes
    keys: list[int] = []
    key = _ROOT
    for segment, tokens in spans:
        if not 0 <= segment < 2**63:
            raise ValueError(f"segment {segment} is not within 0 … 2**63 - 1")
        if tokens < 1 or tokens % block_tokens:
            raise ValueError(f"{tokens} tokens are not a whole number of {block_tokens}-blocks")
        for index in range(tokens // block_tokens):
            key = number(digest(pack(key, segment, index), digest_size=8).digest(), "little")
            keys.append(key)
    return tuple(keys)
