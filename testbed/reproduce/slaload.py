"""What Tables 7 and 8 run: both deployments by rate of requests, long windows, single changes.

A label ends in its rate of requests (``pdd-11-5``: 11.5 /s), and only those of the main
runs begin with a deployment.
"""

from __future__ import annotations

import re
from pathlib import Path

from testbed.reproduce.extent import Extent
from testbed.reproduce.study import Variant

RATES = {
    "pdd": ("9", "10", "11", "11.5"),
    "idc": ("8", "8.5", "9", "10", "11.5"),
}
QUICK_RATES = {"pdd": ("9", "11.5"), "idc": ("8.5", "9", "11.5")}
DEPLOYMENTS = {"pdd": ("PDD", "pdd-paper"), "idc": ("one data centre", "idc-pd-paper")}
LONG_RATES = ("11", "11.5")
LONG_S, NORMAL_S, QUICK_S = 300, 60, 12
"""Lengths of the measuring windows in seconds."""
_SCALE = "topology.parameters.decode=2"
_QUICK = (
    "workload.output={kind: fixed, tokens: 125 tokens}",
    f"window={{warm_up: 8 s, measure: {QUICK_S} s, drain: 90 s}}",
)
_OUTPUT = "workload.output={kind: lognormal, mean: 125 tokens, median: 30 tokens, high: 512 tokens}"
"""An eighth of the answers' length on an eighth of the decode instances: as many sequences
at each, so the time of a step is the same. Warm-ups are as long as it takes to have them."""
_NORMAL = (_OUTPUT, f"window={{warm_up: 30 s, measure: {NORMAL_S} s, drain: 180 s}}")
_LONG = (_OUTPUT, f"window={{warm_up: 30 s, measure: {LONG_S} s, drain: 180 s}}")
_CHANGES = (
    ("h-80", "H of 80 %", "serving.pipeline.threshold=80 %"),
    ("rtt-60", "RTT 60 ms", "links.wan.rtt=60 ms"),
    ("pool-1", "one connection a pair", "pool.size=1"),
)
_FITS = (
    ("pdd", "h200-md", "MD", ("11.5",)), ("idc", "h100-d", "D", ("8.5", "9")),
)  # fmt: skip
"""(deployment, profile, its role, rates): a step's base is varied by 2 % each way."""
VARIED = Path(__file__).parent / "varied"
_RATE = re.compile(r"-(\d+)(?:-(\d))?$")


def variants(extent: Extent) -> tuple[Variant, ...]:
    """Both deployments at each rate; in longer runs also long windows and single changes."""
    quick = extent is Extent.QUICK
    rates, size = (QUICK_RATES, _QUICK) if quick else (RATES, _NORMAL)
    main = tuple(_at(name, rate, size) for name in rates for rate in rates[name])
    if quick:
        return main
    return (*main, *(_long(rate) for rate in LONG_RATES), *_changes(), *_fits())


def label_of(name: str, rate: str) -> str:
    """``pdd-11-5``."""
    return f"{name}-{rate.replace('.', '-')}"


def nominal_rps(label: str) -> float | None:
    """The rate of requests that a label ends in; None where it ends in none."""
    found = _RATE.search(label)
    return float(f"{found[1]}.{found[2] or 0}") if found else None


def _at(name: str, rate: str, size: tuple[str, ...]) -> Variant:
    words, scenario = DEPLOYMENTS[name]
    return Variant(
        label_of(name, rate), scenario, f"{words}, {rate} requests/s",
        (_SCALE, *size, f"workload.arrivals={{kind: poisson, rate: {rate} /s}}"),
    )  # fmt: skip


def _long(rate: str) -> Variant:
    base = _at("pdd", rate, _LONG)
    return Variant(
        f"long-{base.label}", base.scenario, f"{base.words}, window of {LONG_S} s",
        base.overrides, seeds=1, against=base.label,
    )  # fmt: skip


def _changes() -> tuple[Variant, ...]:
    base = _at("pdd", "11.5", _NORMAL)
    return tuple(
        Variant(
            label_of(f"{label}-at", "11.5"), base.scenario, f"{base.words}, {words}",
            (*base.overrides, change), seeds=1, against=base.label,
        )
        for label, words, change in _CHANGES
    )  # fmt: skip


def _fits() -> tuple[Variant, ...]:
    found: list[Variant] = []
    for name, profile, role, rates in _FITS:
        for rate in rates:
            base = _at(name, rate, _NORMAL)
            for word, sign in (("faster", "-2 %"), ("slower", "+2 %")):
                path = VARIED / f"{profile}-{word}.yaml"
                found.append(
                    Variant(
                        label_of(f"{role.lower()}-{word}-at", rate), base.scenario,
                        f"{base.words}, base of {role}'s step {sign}",
                        (*base.overrides, f"serving.hardware.decode={path}"),
                        seeds=1, against=base.label,
                    )
                )  # fmt: skip
    return tuple(found)
