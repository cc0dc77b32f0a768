"""Names of the checks that ``expect.violations`` may use.

Checks lie in a room above this one, so their names stand here a second time; a unit
test holds this list against ``testbed.checks.judge.CHECKS``.
"""

from __future__ import annotations

CHECK_NAMES: tuple[str, ...] = (
    "record-complete",
    "time-ordered",
    "agents-stopped",
    "barrier-passed",
    "on-time",
    "links-faithful",
    "faults-kept",
    "payload-sampled",
    "tokens-equal-reference",
    "tokens-ordered",
    "answered-once",
    "route-kept",
    "authority-single",
    "cache-conserved",
    "memory-kept",
    "ids-told",
    "transfers-verified",
    "bytes-conserved",
    "pages-owned",
    "waits-bounded",
    "retries-bounded",
    "pool-bounded",
    "pool-first-come",
    "deadline-kept",
    "queues-bounded",
    "gone-noticed",
    "cancel-heard",
    "littles-law",
    "drops-explained",
)
