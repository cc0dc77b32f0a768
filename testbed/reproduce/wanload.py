"""The deployments of Table 4 against the load of the WAN.

Arrivals stay at 11.5 a second; the line gets narrower: each seed's rate of a leg is set so
that the payload of its measuring window is exactly the wanted part of what the legs carry.
The buffer keeps its length in time. What a lower rate leaves out, against more bytes on the
full line, one pair of runs shows (``bytes``).

Answers are short: a first token waits for P, for a transfer and for one decode step, none
of which an answer's length changes but through how full RLD and MD are. One pair of runs
with answers of full length shows how much that is (``full``).
"""

from __future__ import annotations

from functools import cache

from testbed.reproduce.extent import Extent
from testbed.reproduce.study import Variant
from testbed.run.prepare import prepare

LOADS = (0.15, 0.5, 0.9, 1.0, 1.05)
QUICK_LOADS = (0.15, 1.05)
ALONE = 0.15
"""The load that 11.5 requests/s put on 2 x 10 Gbit/s."""
LONG_ABOVE = 0.9
FULL_LINE = 1.0
"""From here on the line cannot carry what is asked of it."""
PDD, CDC, IDC, IDC_BRIEF = "pdd", "cdc", "idc", "idc-brief"
SCENARIOS = {PDD: "pdd-paper", CDC: "cdc-pd-paper", IDC: "idc-pd-paper"}
WORDS = {PDD: "PDD", CDC: "CDC-PD", IDC: "IDC-PD"}

_LEG_BPS = 10_000_000_000
_SHORT = "workload.output={kind: fixed, tokens: 32 tokens}"
_BUFFER = "links.wan.buffer=2.68 bdp"
"""64 MiB at 10 Gbit/s and 20 ms."""
LONG = "window={warm_up: 10 s, measure: 145 s, drain: 600 s}"
"""1,668 arrivals in the mean; three seeds make more than 4,800."""
BRIEF = "window={warm_up: 10 s, measure: 40 s, drain: 600 s}"
"""For loads that leave no backlog, and for single changes."""
_QUICK = "window={warm_up: 4 s, measure: 14 s, drain: 300 s}"

CAUSES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("alone", "as published", ()),
    (
        "loss-129", "random loss of 129 ppm a frame",
        ("links.wan.segmentation=frame", "links.wan.loss={kind: random, share: 129 ppm}"),
    ),
    (
        "loss-1000", "random loss of 0.1 % a frame",
        ("links.wan.segmentation=frame", "links.wan.loss={kind: random, share: 0.1 %}"),
    ),
    ("jitter", "the profile wan-10g-jitter", ("links.wan={profile: wan-10g-jitter}",)),
    ("congested", "the profile wan-10g-congested", ("links.wan={profile: wan-10g-congested}",)),
    ("pool-1", "one connection a pair", ("pool.size=1",)),
    ("rtt-100", "RTT 100 ms", ("links.wan.rtt=100 ms",)),
    ("rate-8", "8 requests/s", ("workload.arrivals={kind: poisson, rate: 8 /s}",)),
    (
        "bursty", "arrivals in bursts: 1 s at 23 /s, 1 s of silence",
        ("workload.arrivals={kind: bursty, rate: 11.5 /s, burst: 1 s, silence: 1 s}",),
    ),
)  # fmt: skip
"""(label, words, overrides): other causes, each one change to the published line and rate."""
THRESHOLDS = (("h-80", "H of 80 %", "80 %"), ("h-99", "H of 99 %", "99 %"))


def label(deployment: str, load: float) -> str:
    """``pdd-015``."""
    return f"{deployment}-{round(load * 100):03d}"


def loads(extent: Extent) -> tuple[float, ...]:
    """The loads that are run."""
    return QUICK_LOADS if extent is Extent.QUICK else LOADS


def point(deployment: str, load: float, window: str, seeds: int | None = None) -> Variant:
    """One deployment at one load."""
    return Variant(
        label=label(deployment, load),
        scenario=SCENARIOS[deployment],
        words=f"{WORDS[deployment]} at WAN load {load:g}",
        overrides=(window, _SHORT, _BUFFER),
        tuned=lambda seed: (rate_for(load, window, seed),),
        seeds=seeds,
    )


def main_points(extent: Extent) -> tuple[Variant, ...]:
    """Both deployments with a WAN at every load, and the one without it.

    P's queues grow through a run, so only runs of one window may be compared.
    """
    quick = extent is Extent.QUICK
    return (
        *(
            point(deployment, load, _QUICK if quick else window_of(load))
            for load in loads(extent)
            for deployment in (PDD, CDC)
        ),
        _without_wan(IDC, _QUICK if quick else LONG),
        *(() if quick else (_without_wan(IDC_BRIEF, BRIEF),)),
    )


def window_of(load: float) -> str:
    """The window of a point: long where a backlog can grow."""
    return LONG if load > LONG_ABOVE else BRIEF


def without_wan(extent: Extent, load: float) -> str:
    """Label of the IDC-PD run whose window is that of the points at ``load``."""
    return IDC if extent is Extent.QUICK or load > LONG_ABOVE else IDC_BRIEF


def _without_wan(own: str, window: str) -> Variant:
    seconds = window.split("measure: ")[1].split(",")[0]
    return Variant(own, SCENARIOS[IDC], f"IDC-PD, which has no WAN, {seconds}", (window, _SHORT))


def proofs() -> tuple[Variant, ...]:
    """What the short cuts cost: answers of full length; bytes scaled instead of rates."""
    brief = point(PDD, FULL_LINE, BRIEF, 1)
    narrow = point(CDC, 0.9, BRIEF, 1)
    wider = ("shape.kv=deepseek-v3", "shape.precision=fp8")
    return (
        _named(brief, "short", "PDD at WAN load 1, 40 s, answers of 32 tokens"),
        Variant(
            "full", SCENARIOS[PDD], "the same with answers of full length",
            (BRIEF, _BUFFER), 1, "short", tuned=brief.tuned,
        ),
        _named(narrow, "rates", "CDC-PD at WAN load 0.9, 40 s, by a lower rate"),
        Variant(
            "bytes", SCENARIOS[CDC], "the same by 7.0 times the bytes (the KV of deepseek-v3)",
            (BRIEF, _SHORT, _BUFFER, *wider), 1, "rates",
            tuned=lambda seed: (rate_for(0.9, BRIEF, seed, wider),),
        ),
    )  # fmt: skip


def sensitivity() -> tuple[Variant, ...]:
    """Other causes of a slow WAN, and H: one seed each."""
    variants: list[Variant] = []
    for name, words, overrides in CAUSES:
        for deployment in (PDD, CDC):
            own = f"{deployment}-{name}"
            variants.append(
                Variant(
                    own, SCENARIOS[deployment], f"{WORDS[deployment]}, {words}",
                    (BRIEF, _SHORT, *overrides), 1,
                    "" if name == "alone" else f"{deployment}-alone",
                )
            )  # fmt: skip
    variants.extend(
        Variant(
            f"{PDD}-{name}", SCENARIOS[PDD], f"PDD, {words}",
            (BRIEF, _SHORT, f"serving.pipeline.threshold={share}"), 1, f"{PDD}-alone",
        )
        for name, words, share in THRESHOLDS
    )  # fmt: skip
    return tuple(variants)


@cache
def rate_for(load: float, window: str, seed: int, overrides: tuple[str, ...] = ()) -> str:
    """The override that gives a leg the rate at which this seed's payload is ``load``."""
    plan = prepare(SCENARIOS[CDC], (window, _SHORT, *overrides), seed).plan
    kbit = round(_LEG_BPS * plan.offered.raw_load / load / 8_000) * 8
    return f"links.wan.rate={kbit} kbit/s"


def _named(variant: Variant, own: str, words: str) -> Variant:
    return Variant(
        own, variant.scenario, words, variant.overrides, variant.seeds, tuned=variant.tuned
    )
