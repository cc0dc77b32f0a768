"""How one token's KV lies in memory, without torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KvLayout:
    """One row per token: ``[layer, key | value, head, dim]``, contiguous, little-endian.

    Token-major order makes every cache block one contiguous piece of memory, which
    travels without being gathered first.
    """

    layers: int
    kv_heads: int
    head_dim: int
    item_bytes: int
    """Bytes of one number: 8 for fp64, 4 for fp32."""

    @property
    def row_bytes(self) -> int:
        """Bytes of one real token's KV."""
        return self.layers * 2 * self.kv_heads * self.head_dim * self.item_bytes

    @property
    def row_shape(self) -> tuple[int, int, int, int]:
        """Shape of one row."""
        return (self.layers, 2, self.kv_heads, self.head_dim)
