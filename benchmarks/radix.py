"""The prefix cache: match of a 64K-token prompt, its keys, and the router's index.

``python -m benchmarks.radix [--runs 200]``

1,024 blocks of 64 tokens, as one edge and as the worst tree that can come about: 1,024 edges
of one block. A match counts with its release, in wall time of one call; each cache also holds
other prompts. No lab runs, so no lab kernel is named.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import time
from collections.abc import Callable

from benchmarks.figures import Spread, against_bar, spread
from benchmarks.machine import processor
from testbed.contract.agent import Span
from testbed.contract.block_key import block_keys
from testbed_agents.cache import PrefixIndex, Published, RadixCache

BLOCK = 64
PROMPT = 65_536
BLOCKS = PROMPT // BLOCK
OTHERS = 50
INSTANCES = tuple(f"md{n}" for n in range(1, 17))
MATCH_BAR_MS, ROUTER_BAR_MS = 1.0, 0.1


def keys_of(segment: int) -> tuple[int, ...]:
    """A prompt that shares its first quarter with all others; new objects at each call."""
    shared = Span(segment=0, tokens=PROMPT // 4)
    own = Span(segment=segment, tokens=PROMPT - PROMPT // 4)
    return tuple(block_keys((shared, own), BLOCK))


def timed(what: str, runs: int, call: Callable[[], object]) -> Spread:
    """Milliseconds of one call, ``runs`` times after a tenth as many warm-ups."""
    for _ in range(max(1, runs // 10)):
        call()
    taken: list[float] = []
    gc.collect()
    for _ in range(runs):
        began = time.perf_counter_ns()
        call()
        taken.append((time.perf_counter_ns() - began) / 1e6)
    return spread(what, "ms", taken)


def filled(step: int) -> RadixCache[int]:
    """A cache with the measured prompt in edges of ``step`` blocks, and others."""
    cache: RadixCache[int] = RadixCache((OTHERS + 2) * BLOCKS, 1)
    keys = keys_of(1)
    held = [cache.match(keys[:0])]
    for end in range(step, BLOCKS + 1, step):
        outcome = cache.publish(keys[:end], range(end))
        if not isinstance(outcome, Published):
            raise ValueError(f"the cache refused a prompt of {end} blocks: {outcome}")
        held.append(cache.match(keys[:end]))  # a lock on each piece keeps the edges apart
    for segment in range(2, OTHERS + 2):
        cache.publish(keys_of(segment), range(BLOCKS))
    for match in held:
        match.release()
    return cache


def measure_cache(runs: int) -> None:
    """A match and its release, in a tree of long and one of short edges."""
    keys = keys_of(1)
    for name, step in (("long edges", BLOCKS), ("edges of one block", 1)):
        cache = filled(step)

        def match_and_release(cache: RadixCache[int] = cache) -> None:
            match = cache.match(keys)
            match.release()
            if match.blocks != BLOCKS:
                raise ValueError(f"{match.blocks} of {BLOCKS} blocks found")

        found = timed(f"match and release, {BLOCKS} blocks, {name}", runs, match_and_release)
        print(found, against_bar(found, MATCH_BAR_MS, lower_is_better=True), sep="\n")


def measure_turnover(runs: int) -> None:
    """Match, reserve, publish and release of new prompts in a full cache: 768 blocks leave."""
    cache = filled(BLOCKS)
    prompts = iter([keys_of(1000 + n) for n in range(runs + max(1, runs // 10))])

    def serve() -> None:
        keys = next(prompts)
        match = cache.match(keys)
        cache.publish(keys, range(match.blocks, BLOCKS))
        match.release()

    print(timed("match, evict, publish and release of a new prompt", runs, serve))


def measure_index(runs: int) -> None:
    """The longest prefix at 16 instances: one that holds all, others that hold a part."""
    keys, asked = keys_of(1), keys_of(1)
    index = PrefixIndex(OTHERS * BLOCKS)
    for number, instance in enumerate(INSTANCES):
        index.record(instance, keys[: BLOCKS - number * 32])
        for segment in range(2, OTHERS // 2):
            index.record(instance, keys_of(100 * number + segment))
    name = f"index: longest prefix at {len(INSTANCES)} instances"
    found = timed(name, runs, lambda: index.longest(asked))
    print(found, against_bar(found, ROUTER_BAR_MS, lower_is_better=True), sep="\n")
    print(timed("index: record a prompt", runs, lambda: index.record("md1", asked)))
    for end in range(1, BLOCKS):
        index.record("md1", keys[:end])
    print(timed(f"{name}, edges of one block", runs, lambda: index.longest(asked)))


def main() -> None:
    """Reads the options, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    print(
        f"machine: {processor()}, load {os.getloadavg()[0]:.1f}, Linux {platform.release()}, "
        f"Python {platform.python_version()}"
    )
    print(timed(f"keys of {BLOCKS} blocks", options.runs, lambda: keys_of(1)))
    measure_cache(options.runs)
    measure_turnover(options.runs)
    measure_index(options.runs)


if __name__ == "__main__":
    main()
