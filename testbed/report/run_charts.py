"""The charts of one run."""

from __future__ import annotations

import numpy as np

from testbed.report import wording
from testbed.report.chart import Axis, Band, Chart, Colour, Rule, Trace
from testbed.report.fault_table import fault_bands
from testbed.report.otps_chart import otps_chart
from testbed.report.series import Floats, cdf
from testbed.report.summary import RunSummary
from testbed.report.table import Table

LOW_HIT_PERCENTILE = 20.0
POINTS_MAX = 6000
"""Points in the size chart; a run with more shows its slowest and every n-th other one."""
_TABLE_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
_TABLE_ROWS = 12


def run_charts(run: RunSummary) -> tuple[Chart, ...]:
    """Build all charts for which the run holds data."""
    charts = [pool_chart(run)]
    if run.transfers:
        charts = [cdf_chart(run), size_chart(run), pool_chart(run)]
    if run.legs:
        charts.append(leg_chart(run))
    rate = otps_chart(run.serving.otps) if run.serving is not None else None
    if rate is not None:
        charts.append(rate)
    return tuple(charts)


def points(values: Floats) -> tuple[float, ...]:
    """Return chart coordinates with the precision of a screen, to keep the page small."""
    return tuple(float(f"{value:.5g}") for value in values.tolist())


def window_band(run: RunSummary) -> Band:
    """Return the measuring window as a shaded span."""
    window = run.window
    return Band(begin=window.begin_ns / 1e9, end=window.end_ns / 1e9, label="measuring window")


def cdf_traces(name: str, colour: Colour, run: RunSummary) -> list[Trace]:
    """Return the emulated distribution, and the oracle's where there is one."""
    x, y = cdf([row.duration_s for row in run.transfers])
    traces = [Trace(name=f"{name}emulated", colour=colour, x=points(x), y=points(y), step=True)]
    if run.oracle:
        x, y = cdf([row.duration_s for row in run.oracle])
        ideal: Colour = "two" if not name else colour
        traces.append(
            Trace(
                name=f"{name}oracle",
                colour=ideal,
                x=points(x),
                y=points(y),
                dash="dash",
                step=True,
            )
        )
    return traces


def cdf_chart(run: RunSummary) -> Chart:
    """Distribution of transfer times, emulated against the oracle."""
    own = np.array([row.duration_s for row in run.transfers])
    oracle = np.array([row.duration_s for row in run.oracle]) if run.oracle else None
    rows = tuple(
        (
            wording.share(at),
            wording.seconds(float(np.quantile(own, at))),
            wording.NOTHING if oracle is None else wording.seconds(float(np.quantile(oracle, at))),
        )
        for at in _TABLE_SHARES
    )
    ideal = "" if oracle is None else f", the oracle's {wording.seconds(float(np.median(oracle)))}"
    return Chart(
        id="transfer-cdf",
        title="How long transfers take",
        alt=(
            f"Cumulative distribution of {len(own):,} transfer times: half are done within "
            f"{wording.seconds(float(np.median(own)))}{ideal}, 99 % within "
            f"{wording.seconds(float(np.quantile(own, 0.99)))}."
        ),
        note="From connection acquired to final acknowledgement; waiting for one is not included. "
        "The oracle shares the legs ideally among the same arrivals and sizes.",
        x=Axis(title="transfer time (s)", log=True),
        y=Axis(title="share of transfers", percent=True, zero=True),
        traces=tuple(cdf_traces("", "one", run)),
        table=Table(
            caption="Transfer time by share", head=("share", "emulated", "oracle"), rows=rows
        ),
    )


def size_chart(run: RunSummary) -> Chart:
    """Transfer time against size; low hits marked, because they make the wide tail."""
    hits = np.array([row.hit_share for row in run.transfers])
    sizes = np.array([row.size / 1e6 for row in run.transfers])
    times = np.array([row.duration_s for row in run.transfers])
    low = hits < np.percentile(hits, LOW_HIT_PERCENTILE)
    edge = float(np.percentile(hits, LOW_HIT_PERCENTILE))
    kept = _thin(times)
    slow = times >= np.percentile(times, 99)
    tail = float(np.mean(low[slow]))
    groups = (("lowest fifth of hit rates", low, "three"), ("all others", ~low, "one"))
    colours: dict[str, Colour] = {"three": "three", "one": "one"}
    order = np.argsort(hits)
    fifths = np.array_split(order, 5)
    rows = tuple(
        (
            f"{wording.share(float(hits[part].min()))} to {wording.share(float(hits[part].max()))}",
            wording.size(float(np.mean(sizes[part])) * 1e6),
            wording.seconds(float(np.median(times[part]))),
            wording.seconds(float(times[part].max())),
        )
        for part in fifths
        if len(part)
    )
    return Chart(
        id="time-size",
        title="Transfer time against size",
        alt=(
            f"Scatter of {len(times):,} transfers by size and time. Of the slowest 1 %, "
            f"{tail:.0%} have a hit rate below {wording.share(edge)}, the lowest fifth."
        ),
        note="One point per transfer that belongs to the measuring window.",
        x=Axis(title="size on the wire (MB)", log=True),
        y=Axis(title="transfer time (s)", log=True),
        traces=tuple(
            Trace(
                name=name,
                colour=colours[colour],
                x=points(sizes[kept & which]),
                y=points(times[kept & which]),
                mode="markers",
                symbol="diamond" if colour == "three" else "circle",
            )
            for name, which, colour in groups
        ),
        table=Table(
            caption="By fifth of the hit rates, lowest first",
            head=("hit rate", "mean size", "median time", "longest time"),
            rows=rows,
        ),
    )


def _thin(times: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    kept = np.ones(len(times), dtype=np.bool_)
    if len(times) > POINTS_MAX:
        kept = np.arange(len(times)) % -(-len(times) // POINTS_MAX) == 0
        kept |= times >= np.percentile(times, 99)
    return kept


def pool_rules(run: RunSummary) -> tuple[Rule, ...]:
    """The size of the pool as a line; none for a pool without a bound."""
    if run.pool_size is None:
        return ()
    return (Rule(y=run.pool_size, label=f"pool size {run.pool_size}"),)


def _of_how_many(run: RunSummary) -> str:
    bound = run.pool_size
    return "Of connections without a bound" if bound is None else f"Of {bound} connections"


def pool_chart(run: RunSummary) -> Chart:
    """Busy connections and waiting transfers over time."""
    pool = run.pool
    return Chart(
        id="pool-time",
        title="Pool occupancy and queue over time",
        alt=(
            f"{_of_how_many(run)} at most {wording.digits(float(pool.busy.max()))} are "
            f"busy (mean per bin); at most {wording.digits(float(pool.waiting.max()))} transfers "
            "wait."
        ),
        note="Averages over equal spans of virtual time.",
        x=Axis(title="time since the barrier (s)"),
        y=Axis(title="transfers", zero=True),
        traces=(
            Trace(
                name="busy connections",
                colour="one",
                x=points(pool.time_s),
                y=points(pool.busy),
                fill=True,
            ),
            Trace(
                name="waiting for one",
                colour="three",
                x=points(pool.time_s),
                y=points(pool.waiting),
                dash="dot",
            ),
        ),
        bands=(window_band(run), *fault_bands(run)),
        rules=pool_rules(run),
        table=Table(
            caption="Occupancy at a dozen instants",
            head=("time", "busy", "waiting"),
            rows=tuple(
                (
                    f"{pool.time_s[i]:.1f} s",
                    wording.digits(float(pool.busy[i])),
                    wording.digits(float(pool.waiting[i])),
                )
                for i in _spread(len(pool.time_s))
            ),
        ),
    )


def leg_chart(run: RunSummary) -> Chart:
    """Utilisation of each WAN leg over time, in the direction of the transfers."""
    colours: tuple[Colour, ...] = ("one", "three", "two", "four")
    means = ", ".join(
        f"{leg.name} {wording.share(_mean_inside(run, leg.time_s, leg.utilization))}"
        for leg in run.legs
    )
    first = run.legs[0]
    return Chart(
        id="leg-time",
        title="Use of each WAN leg over time",
        alt=f"Mean use of the legs within the measuring window: {means}.",
        note="Share of the leg's rate, frame headers included, towards the decode site.",
        x=Axis(title="time since the barrier (s)"),
        y=Axis(title="share of the leg's rate", percent=True, zero=True),
        traces=tuple(
            Trace(
                name=leg.name,
                colour=colours[i % len(colours)],
                x=points(leg.time_s),
                y=points(leg.utilization),
                dash=("solid", "dash", "dot")[i % 3],
            )
            for i, leg in enumerate(run.legs)
        ),
        bands=(window_band(run), *fault_bands(run)),
        table=Table(
            caption="Use at a dozen instants",
            head=("time", *(leg.name for leg in run.legs)),
            rows=tuple(
                (
                    f"{first.time_s[i]:.1f} s",
                    *(
                        wording.share(float(leg.utilization[i]))
                        if i < len(leg.utilization)
                        else wording.NOTHING
                        for leg in run.legs
                    ),
                )
                for i in _spread(len(first.time_s))
            ),
        ),
    )


def _mean_inside(run: RunSummary, time_s: Floats, values: Floats) -> float | None:
    inside = (time_s > run.window.begin_ns / 1e9) & (time_s <= run.window.end_ns / 1e9)
    return float(values[inside].mean()) if inside.any() else None


def _spread(length: int) -> list[int]:
    return sorted({round(at) for at in np.linspace(0, length - 1, _TABLE_ROWS).tolist()})
