"""What attention reads of one sequence: keys turned by their rows, and values, layer by layer.

::

    Kv (rows as they travel) ──turn by row──▶ Turned [layer, key | value, head, room, dim]

It is made from a ``Kv``'s rows when the sequence is first continued and then grows with
it, so that a step neither gathers nor turns anything but its own new rows. Rows are
still turned by the place where they lie: a block applied at the wrong place shows.
Head by head the numbers of all tokens lie together, because attention reads them so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from testbed_agents.model.layout import KvLayout
from testbed_agents.model.rope import RopeTable, rotate

_SPARE_LEAST = 64
"""Rows of room beyond what is asked for, at least; else half of what is asked for."""


class Turned:
    """Turned keys and values of the first ``length`` tokens of a sequence."""

    __slots__ = ("_numbers", "length")

    def __init__(self, layout: KvLayout, room: int, dtype: torch.dtype) -> None:
        self.length = 0
        self._numbers = _empty(layout.layers, layout.kv_heads, room, layout.head_dim, dtype)

    def reserve(self, tokens: int) -> None:
        """Make room for ``tokens`` in all; what is there stays."""
        layers, _, heads, room, dim = self._numbers.shape
        if tokens <= room:
            return
        spare = max(_SPARE_LEAST, tokens // 2)
        grown = _empty(layers, heads, tokens + spare, dim, self._numbers.dtype)
        grown[:, :, :, : self.length] = self._numbers[:, :, :, : self.length]
        self._numbers = grown

    def take(self, segments: Sequence[torch.Tensor], rope: RopeTable) -> None:
        """Append whole rows ``[tokens, layer, key | value, head, dim]``; there must be room."""
        for segment in segments:
            begin, end = self.length, self.length + segment.shape[0]
            cos, sin = rope.span(begin, end)
            by_layer = segment.permute(1, 2, 3, 0, 4)
            self._numbers[:, 0, :, begin:end] = rotate(by_layer[:, 0], cos, sin)
            self._numbers[:, 1, :, begin:end] = by_layer[:, 1]
            self.length = end

    def cache(self, begin: int, end: int) -> Cache:
        """For a pass over the tokens from ``begin`` on; there must be room for ``end``."""
        if end == begin + 1:
            places = self._numbers.select(3, begin).unbind(0)
        else:
            places = self._numbers.narrow(3, begin, end - begin).unbind(0)
        seen = self._numbers.narrow(3, 0, end).flatten(0, 1).unbind(0)
        return Cache(end - begin, seen, places)


@dataclass(frozen=True, slots=True)
class Cache:
    """Views of one sequence's turned rows for one pass; none is a copy."""

    count: int
    """New tokens."""
    seen: tuple[torch.Tensor, ...]
    """Keys and values of each layer in turn, ``[head, tokens, dim]``, the new ones included."""
    places: tuple[torch.Tensor, ...]
    """Of each layer, where the new ones go: ``[key | value, head, new, dim]``, without the third
    dimension where there is one."""


def _empty(layers: int, heads: int, room: int, dim: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty((layers, 2, heads, room, dim), dtype=dtype)
