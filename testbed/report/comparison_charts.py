"""The charts of a study: both distributions in one picture."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from testbed.report import wording
from testbed.report.chart import Axis, Chart, Colour, Trace
from testbed.report.published import published_for
from testbed.report.run_charts import cdf_traces, points, pool_rules, size_chart, window_band
from testbed.report.study import Comparison
from testbed.report.summary import RunSummary
from testbed.report.table import Table

_SHARES = (0.5, 0.9, 0.99, 0.999)
_LOAD_STEP = 0.005
"""Loads closer than this are one point of the sweep."""


def comparison_charts(study: Comparison) -> tuple[Chart, ...]:
    """Build all charts of a study; the sweep only where there are runs for it."""
    charts = [_cdfs(study), _pools(study)]
    if study.wide[0].transfers:
        charts.append(size_chart(study.wide[0]).model_copy(update={"title": _SIZE_TITLE}))
    if study.sweep:
        charts.extend(_sweeps(study))
    return tuple(charts)


_SIZE_TITLE = "Wide: transfer time against size"


def _cdfs(study: Comparison) -> Chart:
    traces: list[Trace] = []
    rows: list[tuple[str, ...]] = []
    pairs: tuple[tuple[str, Colour, RunSummary], ...] = (
        ("wide", "one", study.wide[0]),
        ("narrow", "three", study.narrow[0]),
    )
    for name, colour, run in pairs:
        traces.extend(cdf_traces(f"{name}, ", colour, run))
        published = published_for(run.plan.scenario)
        if published:
            known = [(published.value(f"transfer.p{int(at * 100)}_s"), at) for at in (0.5, 0.99)]
            marks = [(value, at) for value, at in known if value is not None]
            traces.append(
                Trace(
                    name=f"{name}, published",
                    colour=colour,
                    x=tuple(value for value, _ in marks),
                    y=tuple(at for _, at in marks),
                    mode="markers",
                    symbol="diamond",
                )
            )
    times = [np.array([row.duration_s for row in run.transfers]) for _, _, run in pairs]
    for at in _SHARES:
        rows.append(
            (wording.share(at), *(wording.seconds(float(np.quantile(t, at))) for t in times))
        )
    return Chart(
        id="transfer-cdf",
        title="How long transfers take",
        alt=(
            f"Half of the transfers are done within {rows[0][1]} (wide) and {rows[0][2]} (narrow), "
            f"99 % within {rows[2][1]} and {rows[2][2]}."
        ),
        note=f"Seed {study.wide[0].plan.seed}. Dashed: ideal sharing. Diamonds: published.",
        x=Axis(title="transfer time (s)", log=True),
        y=Axis(title="share of transfers", percent=True, zero=True),
        traces=tuple(traces),
        table=Table(
            caption="Emulated transfer time by share",
            head=("share", "wide", "narrow"),
            rows=tuple(rows),
        ),
    )


def _pools(study: Comparison) -> Chart:
    wide, narrow = study.wide[0], study.narrow[0]
    traces: list[Trace] = []
    runs: tuple[tuple[str, Colour, RunSummary], ...] = (
        ("wide", "one", wide),
        ("narrow", "three", narrow),
    )
    for name, colour, run in runs:
        x = points(run.pool.time_s)
        traces.append(Trace(name=f"{name}, busy", colour=colour, x=x, y=points(run.pool.busy)))
        traces.append(
            Trace(
                name=f"{name}, waiting",
                colour=colour,
                x=x,
                y=points(run.pool.waiting),
                dash="dot",
            )
        )
    peaks = [(float(r.pool.busy.max()), float(r.pool.waiting.max())) for r in (wide, narrow)]
    return Chart(
        id="pool-time",
        title="Pool occupancy and queue over time",
        alt=(
            f"Wide keeps at most {wording.digits(peaks[0][0])} of {wide.pool_size or 'any'} "
            f"connections busy and {wording.digits(peaks[0][1])} transfers waiting; narrow "
            f"{wording.digits(peaks[1][0])} and {wording.digits(peaks[1][1])}."
        ),
        note=f"Seed {wide.plan.seed}; averages over equal spans of virtual time.",
        x=Axis(title="time since the barrier (s)"),
        y=Axis(title="transfers", zero=True),
        traces=tuple(traces),
        bands=(window_band(wide),),
        rules=pool_rules(wide),
        table=Table(
            caption="Peaks (means per bin)",
            head=("hit rates", "busy", "waiting"),
            rows=tuple(
                (name, wording.digits(busy), wording.digits(waiting))
                for name, (busy, waiting) in zip(("wide", "narrow"), peaks, strict=True)
            ),
        ),
    )


def _sweeps(study: Comparison) -> list[Chart]:
    return [
        _sweep(study, "pool.exhausted_fraction", "Pool exhausted", "share of the window", True),
        _sweep(study, "pool.queue_wait_mean_s", "Mean wait for a connection", "wait (s)", False),
        _sweep(study, "transfer.p99_s", "99th percentile of transfer time", "time (s)", False),
    ]


def _sweep(study: Comparison, metric: str, title: str, axis: str, percent: bool) -> Chart:
    names = (study.wide[0].plan.scenario, study.narrow[0].plan.scenario)
    runs = (*study.wide, *study.narrow, *study.sweep)
    traces: list[Trace] = []
    rows: list[tuple[str, ...]] = []
    labels: tuple[tuple[str, Colour, str], ...] = (
        ("wide", "one", names[0]),
        ("narrow", "three", names[1]),
    )
    for name, colour, scenario in labels:
        by_load = _by_load([run for run in runs if run.plan.scenario == scenario], metric)
        means = [float(np.mean(values)) for values in by_load.values()]
        traces.append(
            Trace(
                name=name,
                colour=colour,
                x=tuple(by_load),
                y=tuple(means),
                low=tuple(min(values) for values in by_load.values()),
                high=tuple(max(values) for values in by_load.values()),
                mode="lines+markers",
                dash="solid" if name == "wide" else "dash",
                symbol="circle" if name == "wide" else "diamond",
            )
        )
        rows.extend(
            (name, wording.share(load), wording.quantity(metric, mean), str(len(by_load[load])))
            for load, mean in zip(by_load, means, strict=True)
        )
    ends = "; ".join(f"{row[0]} at load {row[1]}: {row[2]}" for row in (rows[0], rows[-1]))
    return Chart(
        id=f"sweep-{metric.replace('.', '-').replace('_', '-')}",
        title=f"{title} against offered load",
        alt=f"{title} from the lowest to the highest load: {ends}.",
        note="Mean over seeds; bars from the lowest to the highest seed.",
        x=Axis(title="offered load", percent=True),
        y=Axis(title=axis, percent=percent, zero=True),
        traces=tuple(traces),
        table=Table(caption=title, head=("hit rates", "load", "mean", "n"), rows=tuple(rows)),
    )


def _by_load(runs: Sequence[RunSummary], metric: str) -> dict[float, list[float]]:
    groups: defaultdict[float, list[float]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.plan.offered.load):
        value = run.metric(metric)
        if value is not None:
            groups[round(run.plan.offered.load / _LOAD_STEP) * _LOAD_STEP].append(value)
    return dict(groups)
