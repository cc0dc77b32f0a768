"""Table 4 once for each load of the WAN, and its 90th percentile as a chart."""

from __future__ import annotations

from testbed.report import wording
from testbed.report.chart import Axis, Chart, Colour, Trace
from testbed.report.table import Table
from testbed.reproduce.outcome import Outcomes
from testbed.reproduce.wancause import BASES, CAUSES, Cause
from testbed.reproduce.wancut import P90, cut, cuts, mean_cut
from testbed.reproduce.wanload import CDC, IDC, PDD, WORDS, label, loads


def tables(outcomes: Outcomes) -> tuple[Table, ...]:
    """The table as the paper prints it, once a load, and single changes as pairs."""
    rows: list[tuple[str, ...]] = []
    for load in loads(outcomes.extent):
        rows.extend(
            _line(
                outcomes, f"{load:g}", WORDS[one], own, cuts(outcomes, load) if one == PDD else {}
            )
            for one, own in ((PDD, label(PDD, load)), (CDC, label(CDC, load)), (IDC, IDC))
        )
    rows.append(("published", WORDS[PDD], "4.20 s", "9.80 s", "14.4 s", "46.0 %", ""))
    rows.append(("published", WORDS[CDC], "", "18.1 s", "", "", ""))
    rows.append(("published", WORDS[IDC], "3.90 s", "10.4 s", "17.2 s", "", ""))
    main = Table(
        caption="Time to first token against the load of the WAN",
        head=("load", "deployment", "P50", "P90", "P99", "P90 below CDC-PD", "n"),
        rows=tuple(rows),
        worded=(1,),
        notes=(
            "Means over n seeds. IDC-PD has no WAN: the same runs beside every load.",
            "The 18.1 s of CDC-PD are derived: 9.8 s are 46 % below them.",
        ),
    )
    return (main, *(one for load in BASES if (one := _changes(outcomes, load)) is not None))


def _changes(outcomes: Outcomes, load: float) -> Table | None:
    """Single changes at one load, as pairs; None where none was run."""
    rows = tuple(
        _line(outcomes, cause.words, WORDS[one], own, _cut(outcomes, cause) if one == PDD else {})
        for cause in CAUSES
        if cause.load == load
        for one, own in zip((PDD, CDC), cause.pair, strict=True)
        if outcomes.has(own)
    )
    if not rows:
        return None
    return Table(
        caption=f"Single changes, WAN load {load:g}: one seed, 40 s",
        head=("change", "deployment", "P50", "P90", "P99", "P90 below CDC-PD", "n"),
        rows=rows,
        worded=(1,),
        notes=(
            "At 0.15 on the published line of 2 x 10 Gbit/s; 8 requests/s load it less.",
            "Beside a change of H stands CDC-PD without change: it has no H.",
        ),
    )


def _cut(outcomes: Outcomes, cause: Cause) -> dict[int, float]:
    return dict(outcomes.paired(*cause.pair, P90, cut))


def _line(
    outcomes: Outcomes, first: str, words: str, own: str, below: dict[int, float]
) -> tuple[str, ...]:
    known = [outcomes.estimate(own, name) for name in ("ttft.p50_s", P90, "ttft.p99_s")]
    return (
        first, words, *(wording.seconds(one.mean if one else None) for one in known),
        wording.share(mean_cut(below)) if below else "", str(known[1].n) if known[1] else "0",
    )  # fmt: skip


def against_load(outcomes: Outcomes) -> Chart:
    """P90 of all three deployments against the load."""
    traces: list[Trace] = []
    rows: list[tuple[str, ...]] = []
    lines: tuple[tuple[str, Colour], ...] = ((CDC, "three"), (PDD, "one"), (IDC, "two"))
    for deployment, colour in lines:
        xs: list[float] = []
        means: list[float] = []
        lows: list[float] = []
        highs: list[float] = []
        for load in loads(outcomes.extent):
            own = IDC if deployment == IDC else label(deployment, load)
            values = list(outcomes.of(own, P90).values())
            xs.append(load)
            means.append(sum(values) / len(values))
            lows.append(min(values))
            highs.append(max(values))
            rows.append(
                (WORDS[deployment], wording.share(load), wording.seconds(means[-1]),
                 str(len(values)))
            )  # fmt: skip
        traces.append(
            Trace(
                name=WORDS[deployment], colour=colour, x=tuple(xs), y=tuple(means),
                low=tuple(lows), high=tuple(highs), mode="lines+markers",
                dash="dash" if deployment == IDC else "solid",
            )
        )  # fmt: skip
    last = ", ".join(f"{t.name} {wording.seconds(t.y[-1])}" for t in traces)
    return Chart(
        id="p90-load",
        title="90th percentile of the time to first token against the WAN's load",
        alt=f"At the highest load: {last}.",
        note="Mean over seeds; bars from the lowest to the highest seed. IDC-PD has no WAN.",
        x=Axis(title="offered load of the WAN", percent=True),
        y=Axis(title="P90 of the time to first token (s)", zero=True),
        traces=tuple(traces),
        table=Table(
            caption="P90 by load", head=("deployment", "load", "P90", "n"), rows=tuple(rows)
        ),
    )
