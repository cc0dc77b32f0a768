"""The deployments of Table 4 against the load of the WAN.

Arrivals stay at 11.5 a second; the line gets narrower: each seed's rate of a leg is set so
that the payload of its measuring window is exactly the wanted part of what the legs carry.
The buffer keeps its length in time. What a lower rate leaves out, against more bytes on the
full line, one pair of runs shows (``bytes``).

P is nearly saturated at 11.5 requests/s, so its queues and with them the times to first
token grow through a run: all loads have one window. Single changes have a shorter one and
base runs of their own (``testbed.reproduce.wancause``).

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
FULL_LINE = 1.0
"""From here on the line cannot carry what is asked of it."""
OVER = 1.05
"""The highest load."""
PDD, CDC, IDC = "pdd", "cdc", "idc"
SCENARIOS = {PDD: "pdd-paper", CDC: "cdc-pd-paper", IDC: "idc-pd-paper"}
WORDS = {PDD: "PDD", CDC: "CDC-PD", IDC: "IDC-PD"}

_LEG_BPS = 10_000_000_000
SHORT = "workload.output={kind: fixed, tokens: 32 tokens}"
BUFFER = "links.wan.buffer=2.68 bdp"
"""64 MiB at 10 Gbit/s and 20 ms, which is 54 ms."""
LONG = "window={warm_up: 10 s, measure: 145 s, drain: 600 s}"
"""1,668 arrivals in the mean; three seeds make more than 4,800."""
BRIEF = "window={warm_up: 10 s, measure: 40 s, drain: 600 s}"
"""For single changes, which are compared with a base of this window only."""
_QUICK = "window={warm_up: 4 s, measure: 14 s, drain: 300 s}"


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
        overrides=(window, SHORT, BUFFER),
        tuned=lambda seed: (rate_for(load, window, seed),),
        seeds=seeds,
    )


def main_points(extent: Extent) -> tuple[Variant, ...]:
    """Both deployments with a WAN at every load, and the one without it, in one window."""
    window = _QUICK if extent is Extent.QUICK else LONG
    return (
        *(point(deployment, load, window) for load in loads(extent) for deployment in (PDD, CDC)),
        Variant(IDC, SCENARIOS[IDC], "IDC-PD, which has no WAN", (window, SHORT)),
    )


@cache
def rate_for(load: float, window: str, seed: int, overrides: tuple[str, ...] = ()) -> str:
    """The override that gives a leg the rate at which this seed's payload is ``load``."""
    plan = prepare(SCENARIOS[CDC], (window, SHORT, *overrides), seed).plan
    kbit = round(_LEG_BPS * plan.offered.raw_load / load / 8_000) * 8
    return f"links.wan.rate={kbit} kbit/s"
