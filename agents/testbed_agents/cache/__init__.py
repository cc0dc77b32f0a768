"""Which blocks of a prompt are already here: prefix caches of P and MD, and the router's index.

A prompt is a row of blocks; a block's key names the block and all before it. Prompts that
begin alike share the nodes of one compressed (radix) tree::

    root ─┬─ [k0 k1 k2] ─┬─ [k3 k4]          an edge holds many blocks: keys, values,
          │   2 locks    └─ [k9 k8 k7]       locks, time of last use
          └─ [m0]                            leaves go first, from the tail of an edge

    match ──▶ lock ──▶ reserve (evicts) ──▶ verified ──▶ publish ──▶ release
                              └──────────── failed ────▶ cancel  ──▶ release

What is locked is never evicted; what is reserved counts as used; nothing can be matched
before it is published, and only verified blocks may be. This room is pure: no I/O, no torch,
no clock. Last use is a count of calls, so that equal calls evict equal blocks.
"""

from testbed_agents.cache.budget import Budget
from testbed_agents.cache.index import PrefixIndex
from testbed_agents.cache.match import Match
from testbed_agents.cache.radix import Published, RadixCache
from testbed_agents.cache.reservation import Refusal, Reservation
from testbed_agents.cache.stats import Stats

__all__ = [
    "Budget", "Match", "PrefixIndex", "Published", "RadixCache", "Refusal", "Reservation",
    "Stats",
]  # fmt: skip
