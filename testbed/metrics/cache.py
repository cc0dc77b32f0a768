"""Which part of the window's prompts was found in a cache, in emulated tokens."""

from __future__ import annotations

from testbed.contract.event import Kind
from testbed.metrics.events import Events
from testbed.metrics.record import CacheHits
from testbed.metrics.run import Flags, Run


def cache_hits(run: Run, events: Events, inside: Flags) -> CacheHits:
    """Hits at P from what prefills computed, at MD from what transfers carried."""
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
