"""Compares the distribution of measured delays with the one that was asked for."""

from __future__ import annotations

from testbed.fidelity.bench import Bench
from testbed.fidelity.frame import plain
from testbed.fidelity.kolmogorov import distance, limit
from testbed.fidelity.probe import Probe
from testbed.fidelity.row import CalibrationRow
from testbed.fidelity.sequence import SMALL
from testbed.shaping.qdisc import Pacer

SAMPLES = 400
"""Lone frames, evenly over one period of a delay that wanders."""


def measure_spread(bench: Bench, drawn: list[int]) -> CalibrationRow:
    """Kolmogorov-Smirnov test of the delays.

    ``drawn`` are the delays of independent draws; where the delay wanders, neighbours
    are alike, so lone frames over a whole period are measured instead.
    """
    jitter = bench.way.spec.jitter
    if jitter is None:
        return bench.row("jitter distribution", "none", "not measured", "", True)
    pacer = bench.pacer
    delays = drawn if pacer is None else _over_a_period(bench, pacer)
    found, bound = distance(delays, bench.way.spec.delay_ns, jitter), limit(len(delays))
    return bench.row(
        "jitter distribution (Kolmogorov-Smirnov)",
        f"{bench.way.spec.delay_ns} ± {jitter.spread_ns} ns {jitter.distribution.value}",
        f"D = {found:.5f}, n = {len(delays)}",
        f"D <= {bound:.5f} (p = 1e-6)",
        found <= bound,
    )


def _over_a_period(bench: Bench, pacer: Pacer) -> list[int]:
    period = len(pacer.delays_ns) << pacer.shift
    wait = max(period // SAMPLES, bench.longest_ns + bench.precision.margin_ns)
    serialisation = bench.serialisation_ns(SMALL)
    with Probe(bench.source, bench.sink, plain(SMALL)) as probe:
        bursts = [probe.burst(1, wait) for _ in range(SAMPLES)]
    return [
        arrival.at_ns - burst.sent_ns - serialisation
        for burst in bursts
        for arrival in burst.arrivals
    ]
