"""Output tokens per second around the handoff."""

from __future__ import annotations

from testbed.metrics.serving_record import OutputRate
from testbed.report import wording
from testbed.report.chart import Axis, Chart, Trace
from testbed.report.table import Table


def otps_chart(rate: OutputRate) -> Chart | None:
    """The mean rate of an answer in bins of time; None where nothing was handed over."""
    rows = [
        (at, tokens, answers)
        for at, tokens, answers in zip(rate.at_s, rate.tokens_per_s, rate.answers, strict=True)
        if tokens is not None
    ]
    if not rows:
        return None
    lowest = min(rows, key=lambda row: row[1])
    answers = max(row[2] for row in rows)
    return Chart(
        id="otps-handoff",
        title="Output around the handoff",
        alt=(
            f"Tokens per second of up to {answers} answers around the first token of MD: the "
            f"lowest bin is {wording.digits(lowest[1])} tokens/s at {lowest[0]:+.2f} s."
        ),
        note="Mean over the answers that are under way for the whole bin of 100 ms; few "
        "answers make a rough curve.",
        x=Axis(title="time from MD's first token at the client (s)"),
        y=Axis(title="tokens per second of one answer", zero=True),
        traces=(
            Trace(
                name="tokens per second",
                colour="one",
                x=tuple(at for at, _, _ in rows),
                y=tuple(float(f"{tokens:.5g}") for _, tokens, _ in rows),
                mode="lines+markers",
            ),
        ),
        table=Table(
            caption="Rate by bin",
            head=("middle of the bin", "tokens/s", "answers"),
            rows=tuple(
                (f"{at:+.2f} s", wording.digits(tokens), wording.count(answers))
                for at, tokens, answers in rows
            ),
        ),
    )
