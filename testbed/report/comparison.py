"""The page of a study: wide against narrow, and the findings with their evidence."""

from __future__ import annotations

from pathlib import Path

from testbed.checks.finding import Status
from testbed.report.comparison_charts import comparison_charts
from testbed.report.comparison_tables import (
    RUN_HEAD,
    ablation_table,
    run_links,
    side_by_side,
    timelines,
)
from testbed.report.page import render, write_page
from testbed.report.study import Comparison


def write_comparison(study: Comparison, out: Path) -> Path:
    """Write the page of a study to the file ``out`` and return its path."""
    out.parent.mkdir(parents=True, exist_ok=True)
    return write_page(out, comparison_page(study, out.parent))


def comparison_page(study: Comparison, folder: Path) -> str:
    """Return the page of a study, to be kept in ``folder`` (for links to the runs)."""
    return render(
        "comparison.html.j2",
        comparison_charts(study),
        {
            "title": study.title,
            "status": study.status,
            "words": words(study),
            "findings": study.findings,
            "side_by_side": side_by_side(study),
            "ablation": ablation_table(study) if study.ablation else None,
            "run_head": RUN_HEAD,
            "runs": run_links(study, folder),
            "timelines": timelines(study),
            "answer": study.answer,
        },
    )


def words(study: Comparison) -> str:
    """Return what the study shows, in one or two sentences."""
    if study.status is Status.PASS:
        return (
            "Every run is faithful and passes its checks, and both findings of the paper show: "
            "narrow exhausts the connection pool where wide does not, and the slow tail of wide "
            "belongs to requests with low hit rates."
        )
    broken = [finding for finding in study.findings if finding.status is not Status.PASS]
    return "Not shown: " + " ".join(finding.claim for finding in broken)
