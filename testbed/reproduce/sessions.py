"""Agent sessions at the paper's prompt lengths, for studies of caches.

Each turn repeats its session so far and adds 512 to 4,096 tokens to it. Caches start
empty; prefill takes no time, so that what a cache holds is not a matter of P's queue.
"""

from __future__ import annotations

from testbed.reproduce.extent import Extent

_SIZE = {
    Extent.QUICK: ("workload.arrivals={kind: poisson, rate: 5 /s}",
                   "window={warm_up: 12 s, measure: 20 s, drain: 60 s}"),
    Extent.NORMAL: ("workload.arrivals={kind: poisson, rate: 5 /s}",
                    "window={warm_up: 30 s, measure: 60 s, drain: 60 s}"),
    Extent.FULL: ("workload.arrivals={kind: poisson, rate: 5 /s}",
                  "window={warm_up: 60 s, measure: 240 s, drain: 60 s}"),
}  # fmt: skip
ASSUMPTIONS = (
    "24 sessions at a time, 20 turns on average, 512 to 4,096 new tokens a turn behind 2,048 that "
    "all share, prompts up to 64K tokens, 5 requests/s: chosen to resemble agents, not measured.",
    "Prefill takes no time; caches start empty and have 256 GiB each; an answer in a conversation "
    "is computed anew by the next turn.",
)


def sessions(extent: Extent, decode: int, output: int = 8) -> tuple[str, ...]:
    """Overrides of pdd-paper: 4 P, ``decode`` MD, answers of ``output`` tokens."""
    return (
        "topology.parameters.prefill=4",
        f"topology.parameters.decode={decode}",
        "serving.hardware.prefill=network-only",
        "serving.instances={prefill: session-sticky, decode: session-sticky}",
        "workload.input={kind: uniform, low: 512 tokens, high: 4096 tokens}",
        "workload.hit={kind: prompts}",
        "workload.prompts={kind: sessions, sessions: 24, turns: 20, system: 2048 tokens, "
        "high: 65536 tokens}",
        f"workload.output={{kind: fixed, tokens: {output} tokens}}",
        *_SIZE[extent],
    )
