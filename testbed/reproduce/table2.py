"""The paper's Table 2: a wide and skewed against a narrow and even distribution of hit rates.

Full size: 2 x 10 Gbit/s, 80 requests/s of 64K tokens, 160 connections, both at exactly
1.04 x the legs' payload rate. ``quick`` keeps rates of requests, delays and pool and
divides link rates and sizes by ten. The load sweep and the raw draw are shorter runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from testbed.checks.finding import Status
from testbed.checks.verdict import EXITS
from testbed.errors import ExitStatus
from testbed.report.comparison import words, write_comparison
from testbed.report.study import Study, compare_study
from testbed.reproduce.ablation import ablation_jobs
from testbed.reproduce.answer import answer_text
from testbed.reproduce.batch import Job, run_batch
from testbed.reproduce.extent import Extent

WIDE, NARROW = "pool-wide-skewed", "pool-narrow-even"
ANSWER = "smollm2-answer"
LOADS = ("90 %", "100 %", "110 %")
_SHORT = ("window.warm_up=5 s", "window.measure=20 s")
_TENTH = (
    "links.wan.rate=1 Gbit/s",
    "links.wan.buffer=8 MiB",
    "window.warm_up=5 s",
    "window.measure=20 s",
)


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What a reproduction found."""

    status: ExitStatus
    page: Path
    words: str
    answer: str


def jobs(extent: Extent, seeds: int) -> dict[str, list[Job]]:
    """The runs by their part in the study."""
    scale = _TENTH if extent is Extent.QUICK else ()
    main = {
        name: [Job(f"{name}-s{seed}", name, seed, scale) for seed in range(1, seeds + 1)]
        for name in (WIDE, NARROW)
    }
    parts = dict(main)
    parts["answer"] = [Job(ANSWER, ANSWER)]
    if extent is Extent.QUICK:
        return parts
    parts["sweep"] = [
        Job(
            f"{name}-load{load.split()[0]}", name, 1,
            (*_SHORT, f"workload.offered_load={load}"),
        )
        for name in (WIDE, NARROW)
        for load in LOADS
    ] + [
        Job(f"{name}-raw", name, 1, (*_SHORT, "workload.offered_load=null"))
        for name in (WIDE, NARROW)
    ]  # fmt: skip
    if extent is Extent.FULL:
        parts["ablation"] = [job for job, _ in ablation_jobs()]
    return parts


def reproduce(extent: Extent, seeds: int, out: Path, console: Console) -> Reproduction:
    """Runs the study and writes ``table2.html``.

    Raises:
        TestbedError: a run could not take place.
    """
    parts = jobs(extent, seeds)
    everything = [job for part in parts.values() for job in part]
    finished = run_batch(everything, out, console)

    def folders(part: str) -> tuple[Path, ...]:
        return tuple(finished[job.label].folder for job in parts.get(part, []))

    answer = answer_text(finished[ANSWER].folder)
    study = compare_study(
        Study(
            title="Table 2: connection pool under two distributions of hit rates",
            wide=folders(WIDE),
            narrow=folders(NARROW),
            sweep=folders("sweep"),
            ablation=tuple(
                (what, finished[job.label].folder)
                for job, what in (ablation_jobs() if extent is Extent.FULL else ())
            ),
            answer=answer,
        )
    )
    page = write_comparison(study, out / "table2.html")
    status = study.status
    if status is Status.PASS:
        status = finished[ANSWER].verdict.verdict
    return Reproduction(EXITS[status], page, words(study), answer)
