"""Runs a study: its variants and seeds through the batch, then rows, findings and the page."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from testbed.checks.finding import Status
from testbed.checks.metrics_file import MetricsFile, read_metrics
from testbed.checks.verdict import EXITS
from testbed.errors import AnalysisError, ExitStatus, UsageError
from testbed.report.results import Results, write_results
from testbed.report.results_page import write_results_page
from testbed.reproduce.batch import Job, run_batch
from testbed.reproduce.extent import Extent
from testbed.reproduce.outcome import Outcomes, RunOutcome, Values
from testbed.reproduce.reduce import results_of, shown
from testbed.reproduce.study import Study, Variant
from testbed.run.execute import Finished

REQUESTS_FAILED = "requests-failed"
"""What a variant excuses whose requests may fail; such a check of single runs there is not."""


@dataclass(frozen=True, slots=True)
class Performed:
    """What a study came to, and its page."""

    results: Results
    page: Path

    @property
    def exit_status(self) -> ExitStatus:
        """Exit status of the command."""
        return EXITS[self.results.status]


def default_folder(name: str, root: Path = Path("runs")) -> Path:
    """``runs/reproduce-<name>/<start>``."""
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S")
    return root / f"reproduce-{name}" / stamp


def jobs(study: Study, extent: Extent, seeds: int | None) -> tuple[tuple[Variant, int, Job], ...]:
    """(variant, seed, run) of everything that the study runs.

    Raises:
        UsageError: two variants have one label.
    """
    variants = study.variants(extent)
    labels = [variant.label for variant in variants]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise UsageError("plan the study", study.name, f"variants named twice: {', '.join(twice)}")
    return tuple(
        (
            variant, seed,
            Job(f"{variant.label}-s{seed}", variant.scenario, seed, variant.overrides_of(seed)),
        )
        for variant in variants
        for seed in range(1, study.seed_count(extent, variant, seeds) + 1)
    )  # fmt: skip


def perform(
    study: Study, extent: Extent, seeds: int | None, out: Path, console: Console
) -> Performed:
    """Runs, or goes on with, a study; writes ``<name>.json``, ``<name>.csv`` and the page.

    Raises:
        UsageError: ``out`` holds runs of another study or of other code.
        TestbedError: a run could not take place.
    """
    wanted = jobs(study, extent, seeds)
    finished = run_batch([job for _, _, job in wanted], out, console)
    outcomes = outcomes_of(
        study, extent,
        [(variant, seed, finished[job.label]) for variant, seed, job in wanted],
    )  # fmt: skip
    charts, missing = shown("charts", study.charts, outcomes)
    results = results_of(study, outcomes, missing)
    write_results(out, results)
    page = write_results_page(results, charts, out / f"{study.name}.html")
    return Performed(results, page)


def outcomes_of(
    study: Study, extent: Extent, runs: Sequence[tuple[Variant, int, Finished]]
) -> Outcomes:
    """Reads every measure of every faithful run once."""
    by_label: dict[str, list[RunOutcome]] = {}
    values: dict[tuple[str, str], dict[int, float]] = {}
    for variant, seed, finished in runs:
        run = outcome_of(variant, seed, finished)
        by_label.setdefault(variant.label, []).append(run)
        if run.status is Status.INVALID:
            continue
        for measure in study.measures:
            if measure.only and variant.label not in measure.only:
                continue
            value = run.number(measure.name) if measure.read is None else measure.read(run)
            if value is not None:
                values.setdefault((variant.label, measure.name), {})[seed] = value
    kept: dict[tuple[str, str], Values] = dict(values)
    return Outcomes(extent, {label: tuple(rows) for label, rows in by_label.items()}, kept)


def outcome_of(variant: Variant, seed: int, finished: Finished) -> RunOutcome:
    """One run, without what its variant excuses."""
    verdict = finished.verdict
    invalid = [f.check for f in verdict.findings if f.decides and f.status is Status.INVALID]
    failed = [
        f.check
        for f in verdict.findings
        if f.decides and f.status is Status.FAIL and f.check not in variant.excused
    ]
    metrics = read_metrics(finished.folder / "metrics.json")
    lost = failed_requests(metrics)
    words = verdict.in_words()
    if lost and REQUESTS_FAILED not in variant.excused:
        failed.append(REQUESTS_FAILED)
        words = f"{words} {lost:,} of the window's requests failed."
    status = Status.INVALID if invalid else Status.FAIL if failed else Status.PASS
    if verdict.expectation is not None and not verdict.expectation.held and not variant.excused:
        status = Status.INVALID if status is Status.INVALID else Status.FAIL
    return RunOutcome(
        label=variant.label,
        seed=seed,
        folder=finished.folder,
        metrics=metrics,
        status=status,
        broken=tuple(invalid + failed),
        words=words,
    )


def failed_requests(metrics: MetricsFile) -> int:
    """Requests of the window that were not answered; 0 where the file does not count them."""
    try:
        return int(metrics.number("requests.failed") or 0)
    except AnalysisError:
        return 0
