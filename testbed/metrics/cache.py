"""Which part of the window's prompts was found in a cache, in emulated tokens."""

from __future__ import annotations

import numpy as np

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.metrics.events import Events
from testbed.metrics.record import CacheHits
from testbed.metrics.run import Flags, Run, role_codes


def cache_hits(run: Run, events: Events, inside: Flags) -> CacheHits:
    """Hits at P from what prefills computed, at MD from what transfers carried.

    With a serving plane from what the caches said: a prompt that is all there has no transfer.
    """
    if run.serves:
        return CacheHits(
            p_hit=_matched(run, events, inside, Role.PREFILL),
            md_hit=_matched(run, events, inside, Role.DECODE),
        )
    prefill = events[Kind.PREFILL_START]
    chosen = inside[run.known(prefill.req)]
    context = int(prefill.integers["context"][chosen].sum())
    computed = int(prefill.integers["uncached"][chosen].sum())

    sent = events[Kind.TRANSFER_START]
    carried = inside[run.known(sent.req)]
    block = run.plan.agents[0].shape.block_tokens
    moved = int(sent.integers["blocks"][carried].sum()) * block
    total = sum(run.requests[req].input_tokens for req in sent.req[carried].tolist())
    return CacheHits(
        p_hit=context / (context + computed) if context + computed else None,
        md_hit=1.0 - moved / total if total else None,
    )


def _matched(run: Run, events: Events, inside: Flags, role: Role) -> float | None:
    """Blocks found over blocks asked for, at all instances of a role."""
    table = events[Kind.CACHE_MATCHED]
    chosen = np.isin(table.node, role_codes(run, events, role)) & inside[run.known(table.req)]
    asked = int(table.integers["of"][chosen].sum())
    return int(table.integers["blocks"][chosen].sum()) / asked if asked else None
