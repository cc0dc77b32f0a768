"""Charts of Figure 7: transfer time and time to first token of each request over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from testbed.errors import AnalysisError
from testbed.report import wording
from testbed.report.chart import Axis, Chart, Colour, Trace
from testbed.report.table import Table
from testbed.reproduce.fate import Fate, fates
from testbed.reproduce.outcome import Outcomes
from testbed.reproduce.wanload import CDC, PDD, WORDS, label, loads

_COLOURS: tuple[tuple[str, Colour], ...] = ((CDC, "three"), (PDD, "one"))
_FIFTHS = 5


def over_time(outcomes: Outcomes, load: float) -> tuple[Chart, ...]:
    """Both charts at one load, of the first seed.

    Raises:
        AnalysisError: a run is missing or unreadable.
    """
    rows: dict[str, tuple[Fate, ...]] = {}
    for deployment, _ in _COLOURS:
        runs = outcomes.faithful(label(deployment, load))
        if not runs:
            raise AnalysisError(
                "draw requests over time", label(deployment, load), "has no faithful run"
            )
        rows[deployment] = fates(runs[0].folder)
    return (
        _chart("transfer", "Transfer time", load, rows, lambda fate: fate.transfer_s),
        _chart("ttft", "Time to first token", load, rows, lambda fate: fate.ttft_s),
    )


def at_highest(outcomes: Outcomes) -> tuple[Chart, ...]:
    """At the highest load of the extent."""
    return over_time(outcomes, loads(outcomes.extent)[-1])


def at_both_ends(outcomes: Outcomes) -> tuple[Chart, ...]:
    """At the lowest and the highest load."""
    return (*over_time(outcomes, loads(outcomes.extent)[0]), *at_highest(outcomes))


def _chart(
    name: str, title: str, load: float, rows: dict[str, tuple[Fate, ...]],
    read: Callable[[Fate], float | None],
) -> Chart:  # fmt: skip
    traces: list[Trace] = []
    cells: list[tuple[str, ...]] = []
    peaks: list[str] = []
    for deployment, colour in _COLOURS:
        pairs = [(f.at_s, value) for f in rows[deployment] if (value := read(f)) is not None]
        traces.append(
            Trace(
                name=WORDS[deployment],
                colour=colour,
                x=tuple(float(f"{at:.5g}") for at, _ in pairs),
                y=tuple(float(f"{value:.4g}") for _, value in pairs),
                mode="markers",
                symbol="diamond" if colour == "three" else "circle",
            )
        )
        peaks.append(
            f"{WORDS[deployment]} {wording.seconds(max((v for _, v in pairs), default=None))}"
        )
        cells.extend(_by_time(WORDS[deployment], pairs))
    return Chart(
        id=f"{name}-over-time-{round(load * 100):03d}",
        title=f"{title} at WAN load {load:g}",
        alt=f"{title} of each request by its arrival. The longest: {', '.join(peaks)}.",
        note="First seed of each. One point a request of the measuring window.",
        x=Axis(title="arrival, from the barrier (s)"),
        y=Axis(title=f"{title.lower()} (s)", zero=True),
        traces=tuple(traces),
        table=Table(
            caption="By fifth of the requests, in order of arrival",
            head=("deployment and arrivals", "requests", "median", "longest"),
            rows=tuple(cells),
        ),
    )


def _by_time(name: str, pairs: Sequence[tuple[float, float]]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for part in range(_FIFTHS):
        own = pairs[len(pairs) * part // _FIFTHS : len(pairs) * (part + 1) // _FIFTHS]
        if own:
            values = sorted(value for _, value in own)
            rows.append(
                (
                    f"{name}, {own[0][0]:.0f} to {own[-1][0]:.0f} s", str(len(own)),
                    wording.seconds(values[len(values) // 2]), wording.seconds(values[-1]),
                )
            )  # fmt: skip
    return rows
