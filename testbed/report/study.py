"""A study: runs of two hit-rate distributions, over seeds and loads, and what they show.

Only runs whose facts agree may stand side by side; a difference in lab, clock, model,
pool or window is refused, because it would be read as a difference in hit rates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from testbed.checks.finding import Finding, Status, worst
from testbed.checks.findings import narrow_exhausts, over_seeds, tail_is_low_hit
from testbed.checks.metrics_file import MetricsFile
from testbed.contract.pool import Fifo, Order
from testbed.errors import AnalysisError
from testbed.report.summary import RunSummary, summarize


@dataclass(frozen=True, slots=True)
class Study:
    """Which run folders to compare.

    Attributes:
        wide, narrow: one run per seed, all at one offered load.
        sweep: runs of the same two scenarios at other loads, told apart by their name.
        ablation: (what was changed, run) of single changes to the same scenarios.
        answer: text that a real model gave across the WAN; shown as it is.
    """

    title: str
    wide: tuple[Path, ...]
    narrow: tuple[Path, ...]
    sweep: tuple[Path, ...] = ()
    ablation: tuple[tuple[str, Path], ...] = ()
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A study's runs, reduced, and the findings over them."""

    title: str
    wide: tuple[RunSummary, ...]
    narrow: tuple[RunSummary, ...]
    sweep: tuple[RunSummary, ...]
    ablation: tuple[tuple[str, RunSummary], ...]
    answer: str
    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        """Pass when every run passed its checks and both findings hold."""
        return worst(finding.status for finding in self.findings)

    @property
    def runs(self) -> tuple[RunSummary, ...]:
        """All runs, each once."""
        return (*self.wide, *self.narrow, *self.sweep, *(run for _, run in self.ablation))


def compare_study(study: Study) -> Comparison:
    """Read all runs of a study and judge its findings.

    Raises:
        AnalysisError: a record is unusable, or runs that must agree do not.
    """
    wide = _by_seed(study.wide)
    narrow = _by_seed(study.narrow)
    if not wide or wide.keys() != narrow.keys():
        raise AnalysisError(
            "compare runs",
            study.title,
            f"wide has the seeds {sorted(wide)}, narrow {sorted(narrow)}",
            "run both scenarios with the same seeds",
        )
    sweep = tuple(summarize(folder) for folder in study.sweep)
    ablation = tuple((name, summarize(folder)) for name, folder in study.ablation)
    main = (*wide.values(), *narrow.values())
    _agree(main, (*_LAB, *_SHAPE))
    _agree((main[0], *sweep, *(run for _, run in ablation)), _LAB)
    judged = _judged((*main, *sweep, *(run for _, run in ablation)))
    return Comparison(
        title=study.title,
        wide=tuple(wide.values()),
        narrow=tuple(narrow.values()),
        sweep=sweep,
        ablation=ablation,
        answer=study.answer,
        findings=(
            judged,
            narrow_exhausts(
                [_metrics(run) for run in wide.values()],
                [_metrics(run) for run in narrow.values()],
            ),
            over_seeds([(seed, tail_is_low_hit(run.transfers)) for seed, run in wide.items()]),
        ),
    )


def _by_seed(folders: Iterable[Path]) -> dict[int, RunSummary]:
    runs: dict[int, RunSummary] = {}
    for folder in folders:
        run = summarize(folder)
        if run.plan.seed in runs:
            raise AnalysisError(
                "compare runs", str(folder), f"seed {run.plan.seed} is there twice",
                "give each run once",
            )  # fmt: skip
        runs[run.plan.seed] = run
    return dict(sorted(runs.items()))


def _metrics(run: RunSummary) -> MetricsFile:
    if run.metrics is None:
        raise AnalysisError(
            "compare runs", str(run.folder), "it has no metrics.json", "compute its metrics first"
        )
    return run.metrics


_LAB = ("lab", "clock", "host", "model")
_SHAPE = ("pool", "warm-up", "window", "legs", "leg payload rate")


def _facts(run: RunSummary) -> dict[str, str]:
    plan = run.plan
    return {
        "lab": plan.lab,
        "clock": plan.clock,
        "host": plan.host,
        "model": plan.model,
        "pool": _pool(run),
        "warm-up": f"{run.window.warm_up_ns} ns",
        "window": f"{run.window.measure_ns} ns",
        "legs": str(plan.offered.legs),
        "leg payload rate": f"{plan.offered.leg_payload_bps:.0f} bit/s",
    }


def _pool(run: RunSummary) -> str:
    """Its size, and what else tells it from the default."""
    rules = {
        f" {pool.discipline.kind} {pool.order.value}"
        for pool in (agent.pool for agent in run.plan.agents)
        if (pool.discipline, pool.order) != (Fifo(), Order.FIRST_COME)
    }
    size = "no bound" if run.pool_size is None else str(run.pool_size)
    return size + "".join(sorted(rules))


def _agree(runs: tuple[RunSummary, ...], names: tuple[str, ...]) -> None:
    first = _facts(runs[0])
    for run in runs[1:]:
        facts = _facts(run)
        for name in names:
            if facts[name] != first[name]:
                raise AnalysisError(
                    "compare runs",
                    f"{runs[0].folder} and {run.folder}",
                    f"their {name} differs: {first[name]} and {facts[name]}",
                    "compare runs that differ in hit rates, seed or load only",
                )


def _judged(runs: tuple[RunSummary, ...]) -> Finding:
    """Whether every run passed its own checks; a run without a verdict counts as invalid."""
    violations: list[str] = []
    statuses: list[Status] = []
    for run in runs:
        verdict = run.verdict
        # what a scenario expects makes no figure comparable: the checks themselves must pass
        status = worst((verdict.verdict, verdict.findings_verdict) if verdict else ())
        statuses.append(status)
        if status is not Status.PASS:
            words = run.verdict.in_words() if run.verdict else "it has no verdict.json"
            violations.append(f"{run.folder.name}: {words}")
    return Finding(
        check="every-run-passes",
        claim="Every run is faithful and passes its own checks.",
        status=worst(statuses),
        evidence=f"{len(runs) - len(violations)} of {len(runs)} runs pass",
        violations=tuple(violations),
        violation_count=len(violations),
    )
