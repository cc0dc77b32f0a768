"""How busy each link was, in the window and over the whole run, and what it dropped."""

from __future__ import annotations

from testbed.report import wording
from testbed.report.summary import RunSummary
from testbed.report.table import Table

SHOWN_MAX = 12
"""Links that are shown, the busiest first; the others stand among all metrics."""


def link_table(run: RunSummary) -> Table:
    """One row a link that was sampled, by its use over the whole run."""
    tree = {} if run.metrics is None else run.metrics.below("link")
    names = sorted({name.rpartition(".")[0] for name in tree})

    def figure(link: str, name: str) -> float | None:
        return tree.get(f"{link}.{name}")

    def use(link: str) -> float:
        shares = (figure(link, "utilization"), figure(link, "run_utilization"))
        return max(share or 0.0 for share in shares)

    ordered = sorted(names, key=use, reverse=True)
    rows = tuple(
        (
            link,
            wording.share(figure(link, "utilization")),
            wording.share(figure(link, "run_utilization")),
            wording.count(figure(link, "drops")),
            wording.size(figure(link, "backlog_max_bytes")),
        )
        for link in ordered[:SHOWN_MAX]
    )
    notes = [
        "Use is that of the busier direction, frame headers included. Whole run: from the barrier "
        "to the last byte on the link, as a drain may carry more than the window. Drops and the "
        "longest queue are those of the window."
    ]
    if len(ordered) > SHOWN_MAX:
        notes.append(f"{len(ordered) - SHOWN_MAX} links that are less busy are not shown.")
    return Table(
        caption="Links, the busiest first",
        head=("link", "window", "whole run", "drops", "longest queue"),
        rows=rows,
        notes=tuple(notes),
    )
