"""Figure 7: transfer time (a) and time to first token (b) of each request over time.

The runs are those of Table 4 at its lowest and highest load: ``--out`` of a finished
``table4`` is taken over.
"""

from __future__ import annotations

import numpy as np

from testbed.contract.role import Role
from testbed.metrics.events import read_events
from testbed.metrics.path import round_trip_ns
from testbed.metrics.percentile import NS
from testbed.metrics.run import measured, read_run
from testbed.metrics.transfer import acked_transfers
from testbed.reproduce.extent import Extent
from testbed.reproduce.fate import Fate, fates
from testbed.reproduce.firsttoken import at_both_ends
from testbed.reproduce.outcome import Outcomes, RunOutcome
from testbed.reproduce.study import Claim, Judged, Measure, Study, Variant
from testbed.reproduce.table4 import FREE_RLD, MASKED, MASKED_LEAST, masked
from testbed.reproduce.table4 import STUDY as TABLE4
from testbed.reproduce.wanload import CDC, PDD, label, loads, main_points

LIKE_SPREAD = "transfer.over_alone_p99_over_p50"
TAIL = 95.0
FULLER = 1.5
"""On the full line the spread must be this many times the idle line's, sizes being the same."""


def variants(extent: Extent) -> tuple[Variant, ...]:
    """Both deployments at the lowest and the highest load."""
    ends = (loads(extent)[0], loads(extent)[-1])
    wanted = {label(deployment, load) for deployment in (PDD, CDC) for load in ends}
    return tuple(one for one in main_points(extent) if one.label in wanted)


def spread(run: RunOutcome) -> float | None:
    """99th over 50th percentile of the transfer time."""
    p50, p99 = run.number("transfer.p50_s"), run.number("transfer.p99_s")
    return None if not p50 or p99 is None else p99 / p50


def size_free_spread(run: RunOutcome) -> float | None:
    """The same of transfer times over what each takes alone: its bytes on a leg, a round trip."""
    known, events = read_run(run.folder), read_events(run.folder)
    acked = acked_transfers(known, events)
    chosen = measured(known, events)[acked.req]
    leg_bps = known.plan.offered.leg_payload_bps
    if not leg_bps or not chosen.any():
        return None
    ends = (known.agents(role)[0].node for role in (Role.PREFILL, Role.DECODE))
    rtt_s = round_trip_ns(known.plan.emulated, *ends) / NS
    alone_s = acked.size_bytes[chosen] * 8 / leg_bps + rtt_s
    p50, p99 = np.percentile(acked.duration_s[chosen] / alone_s, (50, 99))
    return float(p99 / p50)


def held_back(run: RunOutcome) -> float | None:
    """Mean part of the first token's time that the transfer took, of the slowest 5 % of them."""
    known = [(f, f.transfer_s) for f in fates(run.folder) if f.transfer_s is not None]
    if not known:
        return None
    edge = float(np.percentile([took for _, took in known], TAIL))
    slow = [(fate, took) for fate, took in known if took >= edge]
    return float(np.mean([_part(fate, took) for fate, took in slow]))


def _part(fate: Fate, took: float) -> float:
    return 0.0 if fate.masked else min(1.0, took / fate.ttft_s)


def propagates(outcomes: Outcomes) -> Judged:
    """CDC-PD waits for every slow transfer, PDD for hardly any, at the highest load."""
    load = loads(outcomes.extent)[-1]
    cdc, pdd = (outcomes.mean(label(one, load), "ttft.transfer_share") for one in (CDC, PDD))
    evidence = (
        f"of a first token's time the slowest transfers are {cdc:.0%} in CDC-PD, {pdd:.0%} in PDD"
    )
    return Judged(evidence, [] if cdc > 2 * pdd else ["the two are too alike"])


def fluctuates(outcomes: Outcomes) -> Judged:
    """Transfer times of CDC-PD at the highest load against those at the lowest.

    Sizes differ by more than times do, so one load alone shows nothing; both have the same ones.
    """
    low, high = loads(outcomes.extent)[0], loads(outcomes.extent)[-1]
    idle, full = (outcomes.mean(label(CDC, load), "transfer.p99_over_p50") for load in (low, high))
    even, uneven = (outcomes.mean(label(CDC, load), LIKE_SPREAD) for load in (low, high))
    evidence = (
        f"the 99th percentile of CDC-PD's transfer time is {full:.3g} times the median at load "
        f"{high:g}, {idle:.3g} times at {low:g}, for the same requests ({full / idle:.2g} times "
        f"as much; at least {FULLER:g} wanted); by size {uneven:.3g} and {even:.3g} times"
    )
    return Judged(evidence, [] if full >= FULLER * idle else ["the full line adds nothing"])


def sidesteps(outcomes: Outcomes) -> Judged:
    """First token before the KV, in PDD."""
    value = outcomes.mean(label(PDD, loads(outcomes.extent)[-1]), MASKED)
    return Judged(
        f"{value:.1%} of PDD's relayed requests with a transfer over 1 s have a token before; "
        f"{FREE_RLD}",
        [] if value >= MASKED_LEAST else ["that is too few"],
    )


STUDY = Study(
    name="fig7",
    title="Figure 7: transfer time and time to first token over time",
    question=(
        "The paper shows CDC-PD's transfers fluctuating from request to request, its first tokens "
        "with them, and PDD's first tokens steady. Is that so, and at which load of the WAN?"
    ),
    variants=variants,
    measures=(
        *(one for one in TABLE4.measures if one.name.startswith(("ttft.", "transfer."))),
        Measure("transfer.p99_over_p50", "Transfer to MD, P99 over P50", read=spread),
        Measure(
            LIKE_SPREAD, "Transfer time over that alone on the line, P99 over P50",
            read=size_free_spread,
        ),
        Measure(
            "ttft.transfer_share", "Part of the first token's time, slowest 5 % of transfers",
            read=held_back,
        ),
        Measure(MASKED, "First token before a transfer of over 1 s ended", read=masked),
        Measure("offered_load", "WAN load, as MD's caches asked for it"),
    ),
    claims=(
        Claim(
            "transfers-fluctuate",
            "Transfer times of CDC-PD fluctuate more on a full line than on an idle one.",
            fluctuates,
        ),
        Claim(
            "spikes-reach-the-user",
            "Slow transfers hold back first tokens in CDC-PD more than twice as much as in PDD.",
            propagates,
        ),
        Claim(
            "pdd-sidesteps",
            "PDD's first token does not wait for a slow transfer, in at least 95 %.",
            sidesteps,
        ),
    ),
    assumptions=(
        *TABLE4.assumptions,
        "How RTT, connections, H and the rate of requests change this, Table 4's study says.",
    ),
    charts=at_both_ends,
)  # fmt: skip
