"""``report.html`` of one run."""

from __future__ import annotations

from pathlib import Path

from testbed.checks.finding import Status
from testbed.report.delay_table import delay_tables
from testbed.report.fault_effects import effects_table
from testbed.report.fault_table import fault_table
from testbed.report.headline import tiles
from testbed.report.link_table import link_table
from testbed.report.page import render, write_page
from testbed.report.run_charts import run_charts
from testbed.report.run_tables import (
    all_metrics_table,
    fidelity_table,
    figures_table,
    load_table,
    pairs_table,
)
from testbed.report.serving_tables import serving_tables
from testbed.report.summary import RunSummary, summarize

_SERVING_CHARTS = ("otps-handoff",)
"""Charts that belong to the section of the serving plane."""


def write_report(run_folder: Path) -> Path:
    """Write ``report.html`` of a run folder and return its path.

    Raises:
        AnalysisError: the record cannot be read (the verdict then says so as well).
    """
    run = summarize(run_folder)
    return write_page(run_folder / "report.html", run_page(run))


def run_page(run: RunSummary) -> str:
    """Return the page of one run."""
    plan = run.plan
    charts = run_charts(run)
    facts = (
        ("Scenario", plan.scenario),
        ("Seed", str(plan.seed)),
        ("Lab", f"{plan.lab}, {plan.clock} clock, on the {plan.host}"),
        ("Model", plan.model),
        *plan.summary,
    )
    digest = run.metrics.text("timeline_sha256") if run.metrics else None
    if digest:
        facts = (*facts, ("Timeline SHA-256", digest))
    return render(
        "run.html.j2",
        charts,
        {
            "title": f"{plan.scenario}, seed {plan.seed}",
            "verdict": run.verdict,
            "status": run.verdict.verdict if run.verdict else Status.INVALID,
            "words": run.verdict.in_words() if run.verdict else "Nobody has judged this run.",
            "tiles": tiles(run),
            "serving": () if run.serving is None else serving_tables(run, run.serving),
            "serving_charts": tuple(chart.id for chart in charts if chart.id in _SERVING_CHARTS),
            "figures": figures_table(run),
            "load": load_table(run),
            "faults": fault_table(run),
            "effects": effects_table(run),
            "delays": delay_tables(run),
            "links": link_table(run),
            "fidelity": fidelity_table(run),
            "facts": pairs_table("The run", facts),
            "provenance": pairs_table("Provenance", run.provenance),
            "metrics": all_metrics_table(run),
            "answers": run.answers,
            "scenario_text": run.scenario_text,
        },
    )
