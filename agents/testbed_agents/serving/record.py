"""Events of a prefix cache, alike at P and MD."""

from __future__ import annotations

from testbed.contract.event import EventLog, Kind
from testbed.errors import AgentError
from testbed_agents.cache import Published, RadixCache, Refusal, Reservation
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


def emit_reserved(
    events: EventLog, cache: RadixCache[Piece], req: int, blocks: int, room: Reservation | Refusal
) -> None:
    """Room was set aside for blocks that will come, or there is none: they are not kept."""
    stats = cache.stats
    events.emit(
        Kind.CACHE_RESERVED, stats.used_bytes, req=req, blocks=blocks,
        evicted=stats.evicted_blocks, reason=room.value if isinstance(room, Refusal) else "",
    )  # fmt: skip


def close_cache(events: EventLog, cache: RadixCache[Piece], under_way: int) -> None:
    """The last word of a cache, once everything under way has given its part back.

    Raises:
        AgentError: somebody still holds a lock or a reservation: it leaked.
        ValueError: the cache's counts are inconsistent.
    """
    cache.check()
    stats = cache.stats
    events.emit(
        Kind.CACHE_CLOSED, stats.used_bytes, blocks=cache.blocks, locks=stats.open_matches,
        reservations=stats.open_reservations, under_way=under_way,
    )  # fmt: skip
    if stats.open_matches or stats.open_reservations:
        raise AgentError(
            "close the prefix cache", f"{cache.blocks} blocks",
            f"{stats.open_matches} locks and {stats.open_reservations} reservations are left",
            "this is a defect of the agent: report it with the run folder",
        )  # fmt: skip
