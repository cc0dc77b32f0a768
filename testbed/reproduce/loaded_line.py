"""Runs in which RLD's answers hand over about 100 tokens while the line is loaded.

The line is narrow enough that requests fill it to about 93 %: a transfer to MD then takes
seconds, as the paper says, and RLD has made about 100 tokens when it ends. P computes in
no time: what is asked begins when the KV is ready.
"""

from __future__ import annotations

from testbed.reproduce.extent import Extent
from testbed.reproduce.study import Variant

SCENARIO = "pdd-paper"
_PLANE = (
    "topology.parameters.prefill=2",
    "serving.hardware.prefill=network-only",
    "workload.hit={kind: uniform, low: 60 %, high: 90 %}",
)
_SMALL = (
    "topology.parameters.decode=1",
    "workload.arrivals={kind: poisson, rate: 1 /s}",
    "workload.output={kind: fixed, tokens: 300 tokens}",
    "window={warm_up: 4 s, measure: 20 s, drain: 90 s}",
    "links.wan.rate=350 Mbit/s",
    "links.wan.buffer=2 MiB",
)
"""About 10 sequences at the one MD; 82 MB a second on 2 x 350 Mbit/s."""
_LARGE = (
    "topology.parameters.decode=2",
    "workload.arrivals={kind: poisson, rate: 1.4 /s}",
    "workload.output={kind: fixed, tokens: 1000 tokens}",
    "window={warm_up: 40 s, measure: 40 s, drain: 180 s}",
    "links.wan.rate=500 Mbit/s",
    "links.wan.buffer=3 MiB",
)
"""About 28 sequences at each MD, what the paper's rate keeps busy; 115 MB a second on 2 x
500 Mbit/s."""

ASSUMPTIONS = (
    "Line of 2 x 350 Mbit/s (quick) or 2 x 500 Mbit/s, RTT 20 ms, buffers of 50 ms: requests fill "
    "it to about 93 %. At the published rates of line and requests (about 15 % full) a transfer "
    "takes tens of milliseconds and RLD makes about five tokens: no effect has its published size.",
    "Every request goes through RLD: hit rates are even over 60 to 90 %, below H.",
    "Prefill takes no time. RLD and MD have the profiles that docs/hardware.md explains; the speed "
    "of extend-decode is fitted to Table 5, so its mean is no prediction.",
    "Quick: 1 request/s of 300 tokens at one MD. Normal: 1.4 requests/s of 1,000 tokens at two "
    "MD, which keeps 28 sequences at each.",
)


def handing_over(
    label: str, words: str, mode: str, extent: Extent, changes: tuple[str, ...] = (),
    seeds: int | None = None, against: str = "",
) -> Variant:  # fmt: skip
    """A variant with one mode of handoff; ``changes`` go after everything else."""
    size = _SMALL if extent is Extent.QUICK else _LARGE
    overrides = (*_PLANE, *size, f"serving.handoff.mode={mode}", *changes)
    return Variant(label, SCENARIO, words, overrides, seeds=seeds, against=against)
