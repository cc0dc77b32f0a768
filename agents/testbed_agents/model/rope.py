"""Rotary positions, rounded exactly as transformers' Llama rounds them.

Angles are computed in fp32 even for fp64 models (``LlamaRotaryEmbedding`` does so);
a table avoids doing that in every pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from testbed_agents.model.weights import DTYPES, LlamaShape

_FIRST_ROOM = 1024


class RopeTable:
    """Cosines and sines by position; grows by doubling."""

    def __init__(self, shape: LlamaShape) -> None:
        exponents = torch.arange(0, shape.head_dim, 2, dtype=torch.int64).float() / shape.head_dim
        self._frequencies = 1.0 / (shape.rope_theta**exponents)
        self._dtype = DTYPES[shape.item_bytes]
        self._room = 0
        self._grow(_FIRST_ROOM)

    def at(self, positions: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines of the positions, each ``[tokens, 1, dim]``."""
        last = max(positions)
        if last >= self._room:
            self._grow(max(2 * self._room, last + 1))
        index = torch.tensor(positions)
        return self._cos[index], self._sin[index]

    def span(self, begin: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines of positions ``begin`` … ``end - 1``, ``[tokens, dim]``: views."""
        if end > self._room:
            self._grow(max(2 * self._room, end))
        return self._cos[begin:end, 0], self._sin[begin:end, 0]

    def _grow(self, room: int) -> None:
        angles = torch.arange(room).float()[:, None] * self._frequencies[None, :]
        cos, sin = angles.cos().to(self._dtype), angles.sin().to(self._dtype)
        self._cos = torch.cat((cos, cos), dim=-1)[:, None, :]
        self._sin = torch.cat((-sin, sin), dim=-1)[:, None, :]
        self._room = room


def rotate(vectors: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turn ``[…, dim]`` by angles of a shape that fits; dimension i pairs with i + dim / 2.

    ``sin`` carries the minus sign of its lower half, so that one product does both.
    """
    low, high = vectors.chunk(2, dim=-1)
    return (vectors * cos).add_(torch.cat((high, low), dim=-1).mul_(sin))
