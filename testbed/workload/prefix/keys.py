"""The hits that one cache without bound would give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from testbed.contract.block_key import Prompt, block_keys, blocks_of, chained

__all__ = ["Prompt", "block_keys", "blocks_of", "chained", "expected_hits"]


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
