"""Single changes to Table 2's scenarios: which one separates ideal sharing from the tail?"""

from __future__ import annotations

from testbed.reproduce.batch import Job

_SHORT = ("window.warm_up=5 s", "window.measure=20 s")

CHANGES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("base", "as in the table, 20 s", ()),
    (
        "one-pipe",
        "one 20 Gbit/s leg instead of two hashed ones",
        ("topology.parameters.legs=1", "links.wan.rate=20 Gbit/s"),
    ),
    ("no-idle", "no slow start after idle", ("tcp.slow_start_after_idle=false",)),
    (
        "loss",
        "random loss of 0.01 % a frame",
        ("links.wan.segmentation=frame", "links.wan.loss={kind: random, share: 0.01 %}"),
    ),
    ("bbr", "BBR instead of CUBIC", ("tcp.congestion=bbr",)),
    ("rtt-5", "RTT 5 ms", ("links.wan.rtt=5 ms",)),
    ("rtt-60", "RTT 60 ms", ("links.wan.rtt=60 ms",)),
    ("pool-64", "64 connections", ("pool.size=64",)),
    ("pool-256", "256 connections", ("pool.size=256",)),
    (
        "bursty",
        "arrivals in bursts: 1 s at 160 /s, 1 s of silence",
        ("workload.arrivals={kind: bursty, rate: 80 /s, burst: 1 s, silence: 1 s}",),
    ),
    (
        "spread",
        "prompt lengths spread over 32K to 96K",
        ("workload.input={kind: uniform, low: 32768 tokens, high: 98304 tokens}",),
    ),
)
"""(label, what was changed, overrides)."""


def ablation_jobs() -> tuple[tuple[Job, str], ...]:
    """(run, what was changed) of every change, for both distributions."""
    return tuple(
        (Job(f"{scenario}-{label}", scenario, 1, (*_SHORT, *overrides)), f"{short}: {what}")
        for scenario, short in (("pool-wide-skewed", "wide"), ("pool-narrow-even", "narrow"))
        for label, what, overrides in CHANGES
    )
