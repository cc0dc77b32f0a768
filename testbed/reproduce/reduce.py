"""From the runs of a study to its results: rows, findings, status. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from testbed.checks.finding import Finding, Status, found, worst
from testbed.errors import AnalysisError
from testbed.report.results import ResultRow, Results, RunRow
from testbed.reproduce.estimate import METHOD, Estimate, estimate
from testbed.reproduce.extent import Extent
from testbed.reproduce.outcome import Outcomes, Values
from testbed.reproduce.study import Claim, Published, Study, Variant

ItemT = TypeVar("ItemT")


def shown(
    what: str, make: Callable[[Outcomes], tuple[ItemT, ...]], outcomes: Outcomes
) -> tuple[tuple[ItemT, ...], tuple[str, ...]]:
    """What a study shows, and a note in its place where figures for it are missing.

    Rows and findings must not be lost with it: they say which run was at fault.
    """
    try:
        return make(outcomes), ()
    except AnalysisError as error:
        return (), (f"No {what}: {error.subject}: {error.cause}.",)


def results_of(study: Study, outcomes: Outcomes, missing: tuple[str, ...] = ()) -> Results:
    """All that the study found; ``missing`` says what else could not be shown."""
    variants = study.variants(outcomes.extent)
    findings = (
        every_run_passes(outcomes),
        *(
            judge(claim, outcomes)
            for claim in study.claims
            if claim.quick or outcomes.extent is not Extent.QUICK
        ),
    )
    tables, no_tables = shown("tables", study.tables, outcomes)
    notes, no_notes = shown("notes", study.notes, outcomes)
    return Results(
        name=study.name,
        title=study.title,
        question=study.question,
        extent=outcomes.extent.value,
        interval=METHOD,
        status=worst(finding.status for finding in findings if finding.decides),
        rows=(*variant_rows(study, variants, outcomes), *contrast_rows(study, outcomes)),
        findings=findings,
        assumptions=study.assumptions,
        notes=(*notes, *no_notes, *no_tables, *missing),
        variants={variant.label: _described(variant) for variant in variants},
        runs=run_rows(outcomes),
        tables=tables,
    )


def variant_rows(
    study: Study, variants: tuple[Variant, ...], outcomes: Outcomes
) -> tuple[ResultRow, ...]:
    """One row for every measure that a variant has a value of."""
    rows: list[ResultRow] = []
    for variant in variants:
        for measure in study.measures:
            values = outcomes.values.get((variant.label, measure.name), {})
            times = None
            if variant.against:
                ratios = outcomes.paired(variant.label, variant.against, measure.name, _ratio)
                known = estimate(list(ratios.values()))
                times = known.mean if known else None
            row = _row(
                variant.label, variant.words, measure.name, measure.label, values,
                _published(study, variant.label, measure.name),
            )  # fmt: skip
            if row is not None:
                rows.append(row.model_copy(update={"against": variant.against, "times": times}))
    return tuple(rows)


def contrast_rows(study: Study, outcomes: Outcomes) -> tuple[ResultRow, ...]:
    """One row for every contrast whose variants were both run."""
    rows = (
        _row(
            contrast.name, f"{contrast.variant} against {contrast.base}", contrast.name,
            contrast.label,
            outcomes.paired(contrast.variant, contrast.base, contrast.measure, contrast.compute),
            _published(study, contrast.name, ""),
        )
        for contrast in study.contrasts
    )  # fmt: skip
    return tuple(row for row in rows if row is not None)


def every_run_passes(outcomes: Outcomes) -> Finding:
    """Whether every run passed its own checks."""
    runs = [run for group in outcomes.runs.values() for run in group]
    broken = [run for run in runs if run.status is not Status.PASS]
    return Finding(
        check="every-run-passes",
        claim="Every run is faithful, passes its own checks and answers all its requests.",
        status=worst(run.status for run in runs),
        evidence=f"{len(runs) - len(broken)} of {len(runs)} runs pass",
        violations=tuple(f"{run.label}, seed {run.seed}: {run.words}" for run in broken[:20]),
        violation_count=len(broken),
    )


def judge(claim: Claim, outcomes: Outcomes) -> Finding:
    """One claim's finding; what cannot be read makes it invalid."""
    try:
        judged = claim.judge(outcomes)
    except AnalysisError as error:
        return found(claim.name, claim.words, "it cannot be told", [str(error)], Status.INVALID)
    return found(claim.name, claim.words, judged.evidence, list(judged.against))


def run_rows(outcomes: Outcomes) -> tuple[RunRow, ...]:
    """The list of runs."""
    rows: list[RunRow] = []
    for group in outcomes.runs.values():
        for run in group:
            offered, failed = run.number("requests.offered"), run.number("requests.failed")
            rows.append(
                RunRow(
                    variant=run.label,
                    seed=run.seed,
                    folder=str(run.folder),
                    status=run.status,
                    words=run.words,
                    offered=None if offered is None else int(offered),
                    failed=None if failed is None else int(failed),
                    offered_load=run.number("offered_load"),
                    wall_s=run.number("wall_s"),
                    timeline_sha256=run.metrics.text("timeline_sha256"),
                )
            )
    return tuple(rows)


def _row(
    variant: str, words: str, measure: str, label: str, values: Values,
    published: Published | None,
) -> ResultRow | None:  # fmt: skip
    known: Estimate | None = estimate(list(values.values()))
    if known is None:
        return None
    return ResultRow(
        variant=variant,
        words=words,
        measure=measure,
        label=label,
        n=known.n,
        mean=known.mean,
        low=known.low,
        high=known.high,
        by_seed=dict(values),
        published=None if published is None else published.value,
        source="" if published is None else f"{published.where} ({published.source})",
    )


def _published(study: Study, variant: str, measure: str) -> Published | None:
    return next((p for p in study.published if p.variant == variant and p.measure == measure), None)


def _ratio(value: float, base: float) -> float:
    return value / base


def _described(variant: Variant) -> str:
    changes = "; ".join(variant.overrides_of(1))
    return f"{variant.words}. Scenario {variant.scenario}{f': {changes}' if changes else ''}"
