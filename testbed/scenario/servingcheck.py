"""Contradictions within ``serving:``, each with the key to change."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.scenario.document import KeyPath
from testbed.scenario.serving import ServingChoice


def serving_faults(serving: ServingChoice) -> Iterator[tuple[KeyPath, str]]:
    """Each as (key, reason)."""
    handoff = serving.handoff
    for key, value in (
        (("match_timeout",), serving.match_timeout.ns),
        (("handoff", "hold"), handoff.hold.ns),
        (("handoff", "least"), handoff.least.count),
        (("queue", "chunk"), serving.queue.chunk.count),
    ):
        if value == 0:
            yield ("serving", *key), "must be above 0"
    memory = serving.memory
    for role, size in (("relay", memory.relay), ("decode", memory.decode)):
        if size is not None and size.bytes == 0:
            yield (
                ("serving", "memory", role),
                "must be above 0; leave it out to take the hardware profile's",
            )
    if handoff.lower.steps >= handoff.upper.steps:
        yield (
            ("serving", "handoff", "lower"),
            f"needs lower < upper, but {handoff.lower} is not below {handoff.upper}",
        )
    if handoff.least.count > handoff.most.count:
        yield (
            ("serving", "handoff", "most"),
            f"needs least <= most, but {handoff.least} are more than {handoff.most}",
        )
    if handoff.easy.fraction >= 1:
        yield ("serving", "handoff", "easy"), "must be below 100 %"
