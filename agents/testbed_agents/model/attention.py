"""Causal grouped-query attention of one sequence over turned keys. Pure."""

from __future__ import annotations

import torch

SCORES_MAX = 1 << 21
"""Attention scores per head held at once; bounds the memory of long prompts."""


def attention(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Attention of the last tokens of one sequence over all of it.

    Args:
        queries: ``[new, heads, dim]``, turned and scaled by ``dim ** -0.5``.
        keys: ``[kv heads, all, dim]``, turned; the last ``new`` belong to the queries.
        values: as keys.

    Returns:
        ``[new, heads * dim]``.
    """
    new, total = queries.shape[0], keys.shape[1]
    step = max(1, SCORES_MAX // total)
    if new <= step:
        return _at_once(queries, keys, values)
    parts: list[torch.Tensor] = []
    for begin in range(0, new, step):
        end = min(new, begin + step)
        visible = total - new + end
        parts.append(_at_once(queries[begin:end], keys[:, :visible], values[:, :visible]))
    return torch.cat(parts)


def of_one(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """``attention`` of one token, query and result ``[kv heads, heads / kv heads, dim]``.

    Three calls of torch: at a few hundred tokens their number counts as much as the work.
    """
    return torch.bmm(torch.softmax(torch.bmm(query, keys.mT), -1), values)


def _at_once(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """``attention`` with all scores in memory at once."""
    new, heads, dim = queries.shape
    kv_heads, total, _ = keys.shape
    group = heads // kv_heads
    grouped = queries.view(new, kv_heads, group, dim).permute(1, 2, 0, 3)
    scores = torch.bmm(grouped.reshape(kv_heads, group * new, dim), keys.mT)
    if new > 1:
        future = torch.ones(new, total, dtype=torch.bool).triu(total - new + 1)
        scores.view(kv_heads, group, new, total).masked_fill_(future, float("-inf"))
    mixed = torch.bmm(torch.softmax(scores, dim=-1), values)
    return mixed.view(kv_heads, group, new, dim).permute(2, 0, 1, 3).reshape(new, heads * dim)
