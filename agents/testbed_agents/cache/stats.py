"""What a cache did and holds, as numbers for events and reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stats:
    """Blocks are counted since the cache was made; bytes and open locks are now."""

    asked_blocks: int
    """Blocks of all prompts that were matched."""
    hit_blocks: int
    published_blocks: int
    duplicate_blocks: int
    """Blocks that were published although they were there: computed or sent for nothing."""
    evicted_blocks: int
    refusals: int
    budget_bytes: int
    """Whole blocks of the budget."""
    used_bytes: int
    reserved_bytes: int
    locked_bytes: int
    high_water_bytes: int
    """Most that were used and reserved together."""
    open_matches: int
    open_reservations: int
