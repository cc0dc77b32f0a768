"""Runs in which RLD's answers hand over about 100 tokens while the line is loaded.

Each seed's line is just so narrow that the requests of its measuring window fill it to
80 %: a transfer to MD then takes seconds, as the paper says, and RLD has made a hundred
tokens and some when it ends; at 93 % it has made 150. P computes in no time: what is asked
begins when the KV is ready.
"""

from __future__ import annotations

from functools import cache

from testbed.reproduce.extent import Extent
from testbed.reproduce.study import Variant
from testbed.run.prepare import prepare

SCENARIO = "pdd-paper"
FILLED = 0.8
HALF = FILLED / 2
_LEG_BPS = 10_000_000_000
"""The scenario's; only what a seed's requests ask of it is read."""
_PLANE = (
    "topology.parameters.prefill=2",
    "serving.hardware.prefill=network-only",
    "workload.hit={kind: uniform, low: 60 %, high: 90 %}",
    "links.wan.buffer=2.5 bdp",
)
"""Two and a half round trips of 20 ms: 50 ms."""
_SMALL = (
    "topology.parameters.decode=1",
    "workload.arrivals={kind: poisson, rate: 1 /s}",
    "workload.output={kind: fixed, tokens: 300 tokens}",
    "window={warm_up: 4 s, measure: 20 s, drain: 90 s}",
)
"""About 10 sequences at the one MD; 82 MB a second in the mean."""
_LARGE = (
    "topology.parameters.decode=2",
    "workload.arrivals={kind: poisson, rate: 1.4 /s}",
    "workload.output={kind: fixed, tokens: 1000 tokens}",
    "window={warm_up: 40 s, measure: 40 s, drain: 180 s}",
)
"""About 28 sequences at each MD, what the paper's rate keeps busy; 115 MB a second in the mean."""
FAR = ("links.wan.rtt=60 ms", "links.wan.buffer=0.833 bdp")
ONE = ("pool.size=1",)
FEWER = ("workload.arrivals={kind: poisson, rate: 1 /s}",)

ASSUMPTIONS = (
    f"Each seed's line of two legs is as narrow as makes its requests fill it to {FILLED:.0%} "
    "over the measuring window (2 x 270 to 350 Mbit/s quick, 2 x 440 to 600 else); the row "
    "'Load of the line' says what MD's caches asked for. RTT 20 ms, buffers of 50 ms. At the "
    "published rates of line and requests (about 15 % full) a transfer takes tens of milliseconds "
    "and RLD makes about five tokens: no effect has its published size.",
    "Every request goes through RLD: hit rates are even over 60 to 90 %, below H.",
    "Prefill takes no time. RLD and MD have the profiles that docs/hardware.md explains; the speed "
    "of extend-decode is fitted to Table 5, so its mean is no prediction.",
    "Quick: 1 request/s of 300 tokens at one MD. Normal: 1.4 requests/s of 1,000 tokens at two "
    "MD, which keeps 28 sequences at each.",
    "8 connections a pair, RTT, the line's load and the rate of requests are unpublished; longer "
    "runs vary each once (one connection, 60 ms, half the load, 1 request/s), one seed each.",
    "RLD's bounds are unpublished: it keeps a request for at most 60 s (hold) and 1,024 tokens "
    "(most), fewer from half its batch on (easy), at least 128 (least). Of its 64 places these "
    "runs use so few that none of this binds; it is not varied.",
)


def handing_over(
    label: str, words: str, mode: str, extent: Extent, changes: tuple[str, ...] = (),
    seeds: int | None = None, against: str = "", load: float = FILLED,
) -> Variant:  # fmt: skip
    """A variant with one mode of handoff; ``changes`` go after everything else."""
    size = _SMALL if extent is Extent.QUICK else _LARGE
    drawn = (*_PLANE, *size)
    asked = (*drawn, *(one for one in changes if one.startswith("workload.")))
    return Variant(
        label, SCENARIO, words, (*drawn, f"serving.handoff.mode={mode}", *changes),
        seeds=seeds, against=against, tuned=lambda seed: (rate_for(asked, load, seed),),
    )  # fmt: skip


@cache
def rate_for(drawn: tuple[str, ...], load: float, seed: int) -> str:
    """The override that gives a leg the rate at which this seed's payload is ``load``."""
    plan = prepare(SCENARIO, drawn, seed).plan
    kbit = round(_LEG_BPS * plan.offered.raw_load / load / 8_000) * 8
    return f"links.wan.rate={kbit} kbit/s"
