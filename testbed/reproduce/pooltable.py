"""Tables and charts of the pool study: one a distribution and load."""

from __future__ import annotations

import numpy as np

from testbed.report import wording
from testbed.report.chart import Axis, Chart, Colour, Trace
from testbed.report.table import Table
from testbed.reproduce.delivery import deliveries
from testbed.reproduce.outcome import Outcomes
from testbed.reproduce.poolfinding import MEAN, P50, P99, REFUSED, SMALL
from testbed.reproduce.poolway import FULL, LIGHT, LOADS, NARROW, SCENARIOS, WIDE, label, ways

_COLUMNS = (
    (P50, "P50"), (P99, "P99"), (MEAN, "mean"), (SMALL, "P90, smaller half"),
    ("transfer.p50_s", "transfer P50"), ("pool.wait_mean_s", "mean wait"),
    ("pool.occupancy_mean", "in use"), ("pool.open_peak", "most open"), (REFUSED, "refused"),
)  # fmt: skip
_WORDS = {WIDE: "Wide and skewed", NARROW: "Narrow and even"}
_DRAWN: dict[str, tuple[tuple[str, Colour], ...]] = {
    LIGHT: (("fifo", "one"), ("per-transfer", "two"), ("lifo", "three"), ("fifo-warm", "four")),
    FULL: (("few", "one"), ("few-small", "two"), ("few-preempt", "three"), ("fifo", "four")),
}
_SHARES = (*(n / 100 for n in range(1, 100)), 0.995)


def tables(outcomes: Outcomes) -> tuple[Table, ...]:
    """Every pool at each load."""
    return tuple(
        _table(outcomes, hits, load)
        for hits in SCENARIOS
        for load in LOADS
        if ways(outcomes.extent, hits, load)
    )


def charts(outcomes: Outcomes) -> tuple[Chart, ...]:
    """How deliveries are distributed, of the first seed.

    Raises:
        AnalysisError: a run is unreadable.
    """
    drawn = (_chart(outcomes, hits, load) for hits in SCENARIOS for load in LOADS)
    return tuple(chart for chart in drawn if chart is not None)


def _table(outcomes: Outcomes, hits: str, load: str) -> Table:
    rows: list[tuple[str, ...]] = []
    for way in ways(outcomes.extent, hits, load):
        known = [outcomes.estimate(label(hits, load, way.name), name) for name, _ in _COLUMNS]
        cells = [
            wording.quantity(name, one.mean) if one else ""
            for (name, _), one in zip(_COLUMNS, known, strict=True)
        ]
        rows.append((way.words, *cells, str(known[0].n) if known[0] else "0"))
    return Table(
        caption=f"{_WORDS[hits]}, load {LOADS[load]}: from asking for a connection to the last "
        "acknowledgement",
        head=("connections", *(words for _, words in _COLUMNS), "n"),
        rows=tuple(rows),
        notes=(
            "Means over n seeds. Those refused are in no time; mean wait counts theirs.",
            "In use and most open: connections, on average over the window and at their peak.",
        ),
    )  # fmt: skip


def _chart(outcomes: Outcomes, hits: str, load: str) -> Chart | None:
    """None where nothing that is drawn was run."""
    traces: list[Trace] = []
    rows: list[tuple[str, ...]] = []
    words = {way.name: way.words for way in ways(outcomes.extent, hits, load)}
    for name, colour in _DRAWN[load]:
        runs = outcomes.faithful(label(hits, load, name)) if name in words else ()
        took = deliveries(runs[0].folder).took_s if runs else np.empty(0)
        if not took.size:
            continue
        values = tuple(float(f"{np.quantile(took, share):.4g}") for share in _SHARES)
        traces.append(Trace(name=words[name], colour=colour, x=values, y=_SHARES))
        rows.append((words[name], *(wording.seconds(values[n]) for n in (9, 49, 89, 98))))
    if not traces:
        return None
    return Chart(
        id=f"cdf-{hits}-{load}",
        title=f"{_WORDS[hits]}, load {LOADS[load]}: part delivered within a time",
        alt="Medians: " + ", ".join(f"{row[0]} {row[2]}" for row in rows) + ".",
        note="First seed of each; wait and opening included.",
        x=Axis(title="from asking for a connection to the last acknowledgement (s)", log=True),
        y=Axis(title="part of the transfers", percent=True),
        traces=tuple(traces),
        table=Table(
            caption="By percentile", head=("connections", "P10", "P50", "P90", "P99"),
            rows=tuple(rows),
        ),
    )  # fmt: skip
