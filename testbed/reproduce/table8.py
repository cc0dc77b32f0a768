"""Tables 7 and 8: answers within the service level, and what they cost.

PDD on 43 H100 and 32 H200 nodes against one data centre with 88 H100 nodes (IDC-PD), by
request rate. SLA: 10 s for the first token, 50 ms for each further one.
"""

from __future__ import annotations

from testbed.errors import AnalysisError
from testbed.metrics.run import read_run
from testbed.report import wording
from testbed.report.table import Table
from testbed.reproduce.deployment import IMPLIED, RATIOS, gain
from testbed.reproduce.outcome import Outcomes, RunOutcome
from testbed.reproduce.slaload import (
    LONG_RATES,
    LONG_S,
    NORMAL_S,
    QUICK_S,
    RATES,
    label_of,
    nominal_rps,
    variants,
)
from testbed.reproduce.study import Claim, Contrast, Judged, Measure, Published, Study

KEPT_LEAST = 0.9
"""Of the offered requests; the scenarios hold the paper's level, 10 s and 50 ms."""
KEPT = "kept_rps"
OFFERED = "offered_rps"
_SHARES = ("sla.ttft_share", "sla.tpot_share")
_LATENCIES = ("ttft.p50_s", "ttft.p90_s", "tpot.p50_s", "tpot.p90_s")
_WINDOW = (
    "P's queue at 11.5 requests/s, which is about what 10 P can do, grows for minutes: whether PDD "
    "keeps the SLA there depends on the window"
)


def offered_rps(run: RunOutcome) -> float | None:
    """Requests that were drawn into the window, a second of it."""
    offered = run.number("requests.offered")
    return None if offered is None else offered / read_run(run.folder).measure_s


def kept_rps(run: RunOutcome) -> float | None:
    """The nominal rate times the share of the window's requests answered within the SLA.

    ``goodput_rps`` counts the requests that happened to be drawn, which differ from seed to
    seed and from rate to rate by more than the deployments do.
    """
    kept, offered = run.number("goodput_rps"), run.number("requests.offered")
    nominal = nominal_rps(run.label)
    if kept is None or nominal is None or not offered:
        return None
    return nominal * kept * read_run(run.folder).measure_s / offered


def best(out: Outcomes, name: str) -> tuple[str, float]:
    """(label, answers/s) of the rate with most answers that keeps the SLA; of none, of all.

    Raises:
        AnalysisError: no variant of this deployment was run.
    """
    labels = [label for label in out.runs if label.startswith(f"{name}-")]
    if not labels:
        raise AnalysisError("choose the best rate", name, "none of its rates was run")
    kept = [label for label in labels if keeps(out, label)]
    chosen = max(kept or labels, key=lambda label: out.mean(label, KEPT))
    return chosen, out.mean(chosen, KEPT)


def keeps(out: Outcomes, label: str) -> bool:
    """Whether 90 % of the offered requests keep each half of the SLA, in the mean over seeds."""
    return all(out.mean(label, name) >= KEPT_LEAST for name in _SHARES)


def pays(out: Outcomes) -> Judged:
    """PDD's BCR is higher at both ends of the implied price ratio."""
    own_label, own = best(out, "pdd")
    base_label, base = best(out, "idc")
    gains = {ratio: gain(own, base, ratio) for ratio in IMPLIED}
    words = "; ".join(f"{_percent(value)} at {ratio:g}" for ratio, value in gains.items())
    against = [f"{_percent(value)} at {ratio:g}" for ratio, value in gains.items() if value <= 0]
    return Judged(
        f"within the SLA {own_label} gives {own:.2f} answers/s, {base_label} {base:.2f}; "
        f"BCR {words}. {_WINDOW}{_long_words(out)}",
        against,
    )


def _long_words(out: Outcomes) -> str:
    """What a window of minutes makes of PDD's highest rates; empty where none was run."""
    known = [(rate, f"long-{label_of('pdd', rate)}") for rate in LONG_RATES]
    words = [
        f"{wording.seconds(out.mean(label, 'ttft.p90_s'))} at {rate}/s "
        f"({'keeps' if keeps(out, label) else 'breaks'} it)"
        for rate, label in known
        if out.has(label)
    ]
    return f"; in {LONG_S} s P90 of TTFT is {', '.join(words)}" if words else ""


def decode_limits(out: Outcomes) -> Judged:
    """At 11.5 requests/s a step of D is over the limit, one of MD is not."""
    own, base = out.mean("pdd-11-5", "tpot.p50_s"), out.mean("idc-11-5", "tpot.p50_s")
    against = [] if own < base else ["MD is not faster than D"]
    return Judged(
        f"median TPOT at 11.5 requests/s: {wording.seconds(own)} (MD), {wording.seconds(base)} (D)",
        against,
    )


def shown(out: Outcomes) -> tuple[Table, ...]:
    """Latencies and goodput by rate, and what the ratio to cost makes of them."""
    return (rate_table(out), price_table(out))


def rate_table(out: Outcomes) -> Table:
    """Table 7's latencies and Table 8's answers a second, rate by rate."""
    published = {"pdd-11-5": "11.5", "idc-9": "9.0"}
    labels = [label_of(name, rate) for name, rates in RATES.items() for rate in rates]
    labels += [f"long-{label_of('pdd', rate)}" for rate in LONG_RATES]
    rows = [
        (
            label, published.get(label, ""), wording.count(out.mean(label, KEPT)),
            wording.count(out.mean(label, OFFERED)),
            *(wording.seconds(out.mean(label, name)) for name in _LATENCIES),
            "yes" if keeps(out, label) else "no",
            str(len(out.of(label, KEPT))),
        )
        for label in labels
        if out.faithful(label)
    ]  # fmt: skip
    return Table(
        caption="Answers within the SLA a second, and latencies, by rate of requests",
        head=("deployment and rate", "published", "measured", "offered /s", "TTFT P50",
              "TTFT P90", "TPOT P50", "TPOT P90", "keeps the SLA", "n"),
        rows=tuple(rows),
        notes=(
            "Means over n seeds. Measured: the nominal rate times the share of the window's "
            "requests that were answered within the SLA. Offered: requests drawn into the window, "
            "a second. The latencies of Table 7 have no public source.",
            f"Windows: {NORMAL_S} s (quick {QUICK_S} s), long {LONG_S} s. {_WINDOW}.",
        ),
    )  # fmt: skip


def price_table(out: Outcomes) -> Table:
    """BCR gain by the price of an H200 node."""
    own_label, own = best(out, "pdd")
    base_label, base = best(out, "idc")
    published = dict(zip(IMPLIED, ("+37.5 %", "+32.4 %"), strict=True))
    return Table(
        caption="Gain in BCR by the price of an H200 node",
        head=("H200 / H100 node", "published", "best rate of each", "by the published rates"),
        rows=tuple(
            (f"{ratio:.2f}", published.get(ratio, ""), _percent(gain(own, base, ratio)),
             _percent(gain(11.5, 9.0, ratio)))
            for ratio in RATIOS
        ),
        notes=(
            f"Best rate: {own_label} ({own:.2f} answers/s) and {base_label} ({base:.2f}), of "
            "those that keep P90 of both times within the SLA the one with most answers; where "
            "none does, of all. By the published rates: 11.5 and 9.0 answers/s, an arithmetic "
            "check of prices. The prices beside the published gains are derived from them.",
        ),
    )  # fmt: skip


def _percent(value: float) -> str:
    return f"{value * 100:+.1f} %"


def _gain_at(ratio: float) -> Contrast:
    def compute(own: float, base: float) -> float:
        return gain(own, base, ratio)

    return Contrast(
        f"bcr-gain-{ratio:.2f}_share".replace(".", "-"),
        f"BCR of PDD at 11.5/s over one data centre at 9/s, H200 at {ratio:g}",
        "pdd-11-5", "idc-9", KEPT, compute,
    )  # fmt: skip


STUDY = Study(
    name="table8",
    title="Tables 7 and 8: goodput under an SLA, and what it costs",
    question="How many answers a second does each deployment give within 10 s and 50 ms, and how "
    "does their ratio to cost depend on prices?",
    variants=variants,
    measures=(
        Measure(KEPT, "Answers within the SLA at the nominal rate, a second", kept_rps),
        Measure(OFFERED, "Requests offered, a second", offered_rps),
        Measure("goodput_rps", "Answers within the SLA of those drawn, a second"),
        Measure("sla.ttft_share", "Requests with a first token in time"),
        Measure("sla.tpot_share", "Requests in time per token"),
        Measure("ttft.p50_s", "TTFT, P50"),
        Measure("ttft.p90_s", "TTFT, P90"),
        Measure("tpot.p50_s", "TPOT, P50"),
        Measure("tpot.p90_s", "TPOT, P90"),
        Measure("serving.queue_wait.p90_s", "Wait for prefill, P90"),
    ),
    contrasts=tuple(_gain_at(ratio) for ratio in IMPLIED),
    published=(
        Published("pdd-11-5", KEPT, 11.5, "note", "Table 8"),
        Published("idc-9", KEPT, 9.0, "note", "Table 8"),
        Published("bcr-gain-1-21_share", "", 0.375, "note", "Table 8; its price is derived"),
        Published("bcr-gain-1-31_share", "", 0.324, "note", "Table 8; its price is derived"),
    ),
    claims=(
        Claim(
            "pdd-has-the-higher-bcr",
            "PDD's BCR is higher over the whole range of prices that the paper implies; follows "
            "from the fits of D's step and P's speed.",
            pays,
        ),
        Claim(
            "md-steps-faster-than-d",
            "MD needs less time per token than D at one rate; follows from the fits of both steps.",
            decode_limits,
        ),
    ),
    assumptions=(
        "Prices are unpublished. The published gains, rates and node counts imply that an H200 "
        "node costs 1.21 to 1.31 H100 nodes; the table sweeps 1 to 2.",
        "Answers are an eighth as long (mean 125) on an eighth of the decode instances (2 for 16): "
        "as many sequences at each, so TPOT is that of the paper's size. RLD's share of the output "
        "is larger than at full length. Quick: all answers have 125 tokens.",
        "Fitted: prefill speed to a median TTFT of 3.9 s at 11.5 requests/s, D's step to 50 ms at "
        "9 requests/s, MD's step to Table 5's 305 ms of extend-decode (docs/hardware.md). That D "
        "breaks the SLA above 9, P is full near 11.5 and MD steps faster than D is therefore built "
        "in, and PDD's higher BCR follows from it. What is not: how many answers as a whole keep "
        "both limits, and what RLD and the WAN add.",
        "How much hangs on the fits: the base of D's and of MD's step is varied by 2 % each way, "
        "one seed each.",
        "H of 95 %, RTT 20 ms, 8 connections a pair: unpublished; varied once each for PDD at 11.5 "
        "requests/s. IDC-PD has no RLD for H to choose and no WAN for RTT; its pools serve 400G "
        "links that its KV fills to less than a hundredth.",
        f"Windows of {QUICK_S} s (quick) or {NORMAL_S} s. {_WINDOW}: at 11 and 11.5 it is also run "
        f"for {LONG_S} s, one seed.",
        "Goodput holds each answer to the SLA; the paper holds P90 to it.",
    ),
    tables=shown,
)  # fmt: skip
