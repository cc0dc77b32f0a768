"""The tables of one run."""

from __future__ import annotations

import math

from testbed.report import wording
from testbed.report.headline import dropped
from testbed.report.published import published_for
from testbed.report.summary import RunSummary
from testbed.report.table import Table

KEY_FIGURES: tuple[tuple[str, str, str | None], ...] = (
    ("Transfer time, median", "transfer.p50_s", "oracle.p50_s"),
    ("Transfer time, 90th percentile", "transfer.p90_s", None),
    ("Transfer time, 99th percentile", "transfer.p99_s", "oracle.p99_s"),
    ("Transfer time, mean", "transfer.mean_s", None),
    ("Transfers that failed", "transfer.failed", None),
    ("TCP segments sent again", "transfer.retransmits", None),
    ("Packets dropped on all links in the window", "link.drops", None),
    ("Pool utilization", "pool.utilization", None),
    ("Pool exhausted, share of the window", "pool.exhausted_fraction", None),
    ("Wait of completed transfers, mean", "pool.queue_wait_mean_s", "oracle.queue_wait_mean_s"),
    ("Wait of completed transfers, 99th percentile", "pool.queue_wait_p99_s", None),
    ("Wait for a connection, got or not, median", "pool.wait_p50_s", None),
    ("Wait for a connection, got or not, 99th percentile", "pool.wait_p99_s", None),
    ("Refused a connection", "pool.refused", None),
    ("Time to first token, median", "ttft.p50_s", None),
    ("Time to first token, 90th percentile", "ttft.p90_s", None),
    ("Time to first token, 99th percentile", "ttft.p99_s", None),
    ("Time per output token, median", "tpot.p50_s", None),
    ("Time per output token, 90th percentile", "tpot.p90_s", None),
    ("Gap between tokens at the client, median", "gap.p50_s", None),
    ("Gap between tokens at the client, 90th percentile", "gap.p90_s", None),
    ("Gap between tokens at the client, 99th percentile", "gap.p99_s", None),
    ("Gap between tokens at the client, longest", "gap.max_s", None),
    ("Requests offered", "requests.offered", None),
    ("Requests completed", "requests.completed", None),
    ("Requests failed", "requests.failed", None),
    ("Requests failed after their first token", "ttft.failed_requests", None),
    ("Goodput (requests per second)", "goodput_rps", None),
    ("Benefit-cost ratio (goodput over price of the nodes)", "bcr", None),
)
"""Label, metric, and the oracle's metric beside it."""
DROPS = "link.drops"
"""Stands for the sum over all links."""


def figures_table(run: RunSummary) -> Table:
    """Emulated and, where there are any, oracle and published side by side."""
    published = published_for(run.plan.scenario)
    rows: list[tuple[str, str, str, str]] = []
    for label, metric, ideal in KEY_FIGURES:
        value = dropped(run) if metric == DROPS else run.metric(metric)
        if run.metrics is not None and value is None:
            continue  # does not apply to this run
        known = published.value(metric) if published else None
        rows.append(
            (
                label,
                wording.quantity(metric, value),
                _told(ideal, run.metric(ideal) if ideal else None),
                _told(metric, known),
            )
        )
    kept = [0, 1, *(column for column in (2, 3) if any(row[column] for row in rows))]
    head = ("figure", "emulated", "oracle", "published")
    notes = [_taken_over(run)]
    if 2 in kept:
        notes.append(
            "The oracle is an ideal equal-sharing link with the same arrivals, sizes and pool."
        )
    if published:
        notes.append(
            f"{published.title}: {published.conditions}. A reference to compare with, not a "
            "threshold: line delay, pool size, run length and seeds are unpublished."
        )
    return Table(
        caption="Emulated, beside ideal sharing and published figures where there are any",
        head=tuple(head[column] for column in kept),
        rows=tuple(tuple(row[column] for column in kept) for row in rows),
        notes=tuple(note for note in notes if note),
    )


def _told(metric: str | None, value: float | None) -> str:
    return "" if metric is None or value is None else wording.quantity(metric, value)


def _taken_over(run: RunSummary) -> str:
    """Which requests and transfers the figures are taken over."""
    done = run.metric("ttft.requests")
    if done is None:
        return ""
    text = (
        f"Times to and per token are those of the {wording.count(done)} completed requests of the "
        "window, transfer times those of completed transfers from P to MD; gaps are those of all "
        "requests."
    )
    cut = run.metric("ttft.failed_requests")
    if cut:
        text += (
            f" {wording.count(cut)} more had their first token, after "
            f"{wording.seconds(run.metric('ttft.failed_p50_s'))} in the median, and failed later."
        )
    return text


def load_table(run: RunSummary) -> Table:
    """Offered load, Little's law, and what a reader can check by hand."""
    offered, law = run.plan.offered, run.law
    seconds = run.window.measure_ns / 1e9
    asked = run.metric("offered_load")
    rows = (
        ("Payload offered within the window", wording.size(offered.payload_bytes)),
        (
            "What the legs can carry as payload",
            f"{offered.legs} x {wording.rate(offered.leg_payload_bps)} for {seconds:g} s",
        ),
        ("Offered load", wording.share(offered.load)),
        *(
            ()
            if run.serving is None
            else (("The same, as MD's caches asked for it", wording.share(asked)),)
        ),
        (
            "Load of the raw draw",
            f"{wording.share(offered.raw_load)} (sizes scaled by {offered.byte_scale:.4f})",
        ),
        (
            "Arrivals x mean stay (Little's law)",
            f"{law.arrivals_per_s:.2f}/s x {wording.seconds(law.mean_stay_s)} = "
            f"{law.arrivals_per_s * law.mean_stay_s:.1f} transfers",
        ),
        ("Occupancy as measured (waiting and sending)", f"{law.measured:.1f} transfers"),
        ("Warm-up, not counted", wording.seconds(run.window.warm_up_ns / 1e9)),
        ("Measuring window", wording.seconds(seconds)),
        ("Drain, not counted", f"up to {wording.seconds(run.window.drain_ns / 1e9)}"),
    )
    return Table(
        caption="What was asked of the WAN, and how full the pool was",
        head=("quantity", "value"),
        rows=rows,
        notes=(
            "Beyond a load of 100 % the queue grows for as long as the window lasts, so "
            "arrivals x mean stay exceeds the occupancy averaged over the window.",
        ),
    )


def fidelity_table(run: RunSummary) -> Table:
    """Every compared quantity of the lab, deviations first."""
    names: list[str] = []
    for row in run.fidelity:
        names.extend(name for name, _ in row.columns if name not in names)
    ordered = sorted(run.fidelity, key=lambda row: row.ok)
    return Table(
        caption="What the plan asked of the lab, and what the lab was",
        head=("part", *names, "ok"),
        rows=tuple(
            (
                row.section,
                *(dict(row.columns).get(name, "") for name in names),
                "yes" if row.ok else "NO",
            )
            for row in ordered
        ),
        marks=tuple("" if row.ok else "invalid" for row in ordered),
    )


def pairs_table(caption: str, pairs: tuple[tuple[str, str], ...]) -> Table:
    """A table of names and values."""
    return Table(caption=caption, head=("name", "value"), rows=pairs, prose=True)


def all_metrics_table(run: RunSummary) -> Table:
    """Every metric as ``metrics.json`` has it."""
    rows: list[tuple[str, str]] = []
    if run.metrics is not None:
        for name, value in run.metrics.leaves():
            if value is None or isinstance(value, list):  # a chart shows those
                continue
            whole = isinstance(value, float) and math.isfinite(value)
            rows.append((name, f"{value:.9g}" if whole else str(value)))
    return Table(
        caption="Every metric, in SI units",
        head=("metric", "value"),
        rows=tuple(rows),
        notes=("Metrics that do not apply to this run (null) are left out.",),
    )
