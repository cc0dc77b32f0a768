"""Events of a prefix cache, alike at P and MD."""

from __future__ import annotations

from testbed.contract.event import EventLog, Kind
from testbed_agents.cache import Published, RadixCache, Refusal
from testbed_agents.serving.prompt import Prompt
from testbed_agents.serving.rows import Piece


def emit_matched(
    events: EventLog, cache: RadixCache[Piece], req: int, blocks: int, prompt: Prompt
) -> None:
    """A prompt was matched and its ``blocks`` leading blocks are locked."""
    events.emit(
        Kind.CACHE_MATCHED, cache.stats.used_bytes, req=req, blocks=blocks, of=prompt.blocks
    )


def emit_published(
    events: EventLog, cache: RadixCache[Piece], req: int, outcome: Published | Refusal
) -> None:
    """A prompt's blocks may be found now; none are new where there was no room."""
    stats = cache.stats
    new = outcome.new if isinstance(outcome, Published) else 0
    events.emit(
        Kind.CACHE_PUBLISHED, stats.used_bytes, req=req, blocks=new, evicted=stats.evicted_blocks
    )
