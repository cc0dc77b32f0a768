"""The tables of a study: published, oracle and emulated in one table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.report import wording
from testbed.report.published import published_for
from testbed.report.study import Comparison
from testbed.report.summary import RunSummary
from testbed.report.table import Table

_ROWS: tuple[tuple[str, str, str | None], ...] = (
    ("Transfer, P50", "transfer.p50_s", "oracle.p50_s"),
    ("Transfer, P99", "transfer.p99_s", "oracle.p99_s"),
    ("Pool in use", "pool.utilization", None),
    ("Pool exhausted", "pool.exhausted_fraction", None),
    ("Wait, mean", "pool.queue_wait_mean_s", "oracle.queue_wait_mean_s"),
    ("First token, P50", "ttft.p50_s", None),
    ("First token, P90", "ttft.p90_s", None),
)


@dataclass(frozen=True, slots=True)
class RunLink:
    """One row of the list of runs: where its report lies, and its facts."""

    name: str
    href: str
    """Relative path of its report; empty where there is none."""
    cells: tuple[str, ...]
    status: str


RUN_HEAD = (
    "run",
    "seed",
    "failed",
    "load",
    "raw load",
    "sizes x",
    "P50",
    "P99",
    "pool",
    "wait",
    "verdict",
)


def side_by_side(study: Comparison) -> Table:
    """Return the paper's table, ours beside it: mean and range over the seeds."""
    rows: list[tuple[str, ...]] = []
    for label, metric, ideal in _ROWS:
        for name, runs in (("wide", study.wide), ("narrow", study.narrow)):
            published = published_for(runs[0].plan.scenario)
            value = published.value(metric) if published else None
            rows.append(
                (
                    label,
                    name,
                    "" if value is None else wording.quantity(metric, value),
                    _mean(runs, ideal) if ideal else "",
                    _mean(runs, metric),
                    _range(runs, metric),
                )
            )
    notes = [
        "Oracle: ideal equal sharing of all legs among the same arrivals and sizes, with the "
        "same pool. Emulated: real TCP in the lab, mean over seeds.",
        "Transfer: from connection acquired to final acknowledgement. Pool in use: time average of "
        "busy connections. Pool exhausted: share of the window in which all are busy and someone "
        "waits.",
        f"n = {len(study.wide)} seed(s) each. Published figures are references, not thresholds: "
        "line delay, pool size, run length and seeds behind them are unpublished. Here RTT 20 ms "
        "and 160 connections; only --full varies both.",
    ]
    for runs in (study.wide, study.narrow):
        published = published_for(runs[0].plan.scenario)
        if published:
            notes.append(f"{published.title}: {published.conditions}.")
    return Table(
        caption="Published, ideal and emulated",
        head=("figure", "hit rates", "published", "oracle", "emulated", "range"),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def ablation_table(study: Comparison) -> Table:
    """Each single change against the same scenario's mean at the study's load."""
    rows: list[tuple[str, ...]] = []
    for name, run in study.ablation:
        base = study.wide if run.plan.scenario == study.wide[0].plan.scenario else study.narrow
        p99, usual = run.metric("transfer.p99_s"), _values(base, "transfer.p99_s")
        change = wording.NOTHING
        if p99 is not None and usual:
            change = f"x {p99 / (sum(usual) / len(usual)):.2f}"
        rows.append(
            (
                name,
                "wide" if base is study.wide else "narrow",
                wording.seconds(run.metric("transfer.p50_s")),
                wording.seconds(p99),
                change,
                wording.share(run.metric("pool.utilization")),
                wording.share(run.metric("pool.exhausted_fraction")),
                wording.seconds(run.metric("pool.queue_wait_mean_s")),
            )
        )
    return Table(
        caption="One change at a time",
        head=("change", "hit rates", "P50", "P99", "P99 to base", "pool", "exhausted", "wait"),
        rows=tuple(rows),
        notes=("Base: the mean over the seeds of the study, same scenario, same load.",),
    )


def run_links(study: Comparison, folder: Path) -> tuple[RunLink, ...]:
    """List the runs with links relative to ``folder``, where the page will lie."""
    links: list[RunLink] = []
    for run in study.runs:
        report = run.folder / "report.html"
        offered = run.plan.offered
        links.append(
            RunLink(
                name=run.plan.scenario,
                href=os.path.relpath(report, folder) if report.exists() else "",
                cells=(
                    str(run.plan.seed),
                    wording.count(run.metric("requests.failed")),
                    wording.share(offered.load),
                    wording.share(offered.raw_load),
                    f"{offered.byte_scale:.4f}",
                    wording.seconds(run.metric("transfer.p50_s")),
                    wording.seconds(run.metric("transfer.p99_s")),
                    wording.share(run.metric("pool.utilization")),
                    wording.seconds(run.metric("pool.queue_wait_mean_s")),
                ),
                status=run.verdict.verdict.value if run.verdict else "invalid",
            )
        )
    return tuple(links)


def timelines(study: Comparison) -> Table:
    """The timeline hash of each run: equal hashes mean equal runs, to the nanosecond."""
    rows = tuple(
        (
            run.plan.scenario,
            str(run.plan.seed),
            wording.share(run.plan.offered.load),
            (run.metrics.text("timeline_sha256") if run.metrics else None) or wording.NOTHING,
        )
        for run in study.runs
    )
    return Table(
        caption="Timelines", head=("run", "seed", "load", "SHA-256"), rows=rows, prose=True
    )


def _values(runs: Sequence[RunSummary], metric: str) -> list[float]:
    values = (run.metric(metric) for run in runs)
    return [value for value in values if value is not None]


def _mean(runs: Sequence[RunSummary], metric: str) -> str:
    values = _values(runs, metric)
    return wording.quantity(metric, sum(values) / len(values) if values else None)


def _range(runs: Sequence[RunSummary], metric: str) -> str:
    values = _values(runs, metric)
    if len(values) < 2:
        return "one seed" if values else wording.NOTHING
    return f"{wording.quantity(metric, min(values))} to {wording.quantity(metric, max(values))}"
