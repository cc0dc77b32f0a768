"""Runs many scenarios, one guest per core, and shows them in one progress display."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars

from testbed.errors import TestbedError
from testbed.lab.guest.progress import Progress
from testbed.reproduce.hold import held
from testbed.reproduce.resume import claim_folder, free_place, place_of, stamp, take_over
from testbed.run.execute import Finished, execute
from testbed.run.prepare import Prepared, prepare


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a batch. ``label`` names its folder below the batch's."""

    label: str
    scenario: str
    seed: int | None = None
    overrides: tuple[str, ...] = ()


class _StoppedError(TestbedError):
    """Another run of the batch failed, or the user interrupted: end this guest."""

    def __init__(self, label: str) -> None:
        super().__init__(
            "go on with the run", label,
            "it was ended early: another run of the study failed, or the study was interrupted",
            "start the study again with the same --out",
        )  # fmt: skip


def run_batch(jobs: Sequence[Job], out: Path, console: Console) -> dict[str, Finished]:
    """Runs all jobs, as many at once as there are cores; the longest first.

    Every plan is made before the first guest boots, so a wrong job costs nothing. Runs that
    an earlier, interrupted start left finished in ``out`` are taken over.

    Raises:
        UsageError: ``out`` holds runs of other plans or other code, or something else, or
            another command works in it.
        TestbedError: the first failure; the other guests are ended.
    """
    prepared = {
        job.label: prepare(job.scenario, job.overrides, job.seed, place=out) for job in jobs
    }
    own = stamp()
    with held(out):
        claim_folder(out, own)
        return _run_all(prepared, out, console)


def _run_all(prepared: dict[str, Prepared], out: Path, console: Console) -> dict[str, Finished]:
    places = {label: place_of(out, label, plan) for label, plan in prepared.items()}
    order = sorted(prepared, key=lambda label: -prepared[label].plan.estimate.wall_s)
    stop = threading.Event()
    results: dict[str, Finished] = {}
    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=24),
        TextColumn("{task.fields[figures]}"),
    )  # fmt: skip
    with (
        Bars(*columns, console=console, transient=not console.is_terminal) as bars,
        ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool,
    ):
        overall = bars.add_task("all runs", total=len(prepared), figures=f"0 of {len(prepared)}")

        def one(label: str) -> None:
            if stop.is_set():
                return
            folder, there = places[label]
            kept = take_over(folder) if there else None
            if there and kept is None:  # its record is unusable, and stays as it is
                folder = free_place(out, label)
            results[label] = kept or _run(prepared[label], folder, bars, stop, label)
            done = len(results)
            bars.update(overall, completed=done, figures=f"{done} of {len(prepared)}")
            finished = results[label]
            how = "taken over" if kept else f"wall {_seconds(finished)}"
            console.print(f"{label}: {finished.verdict.verdict.value}, {how}", markup=False)

        futures = [pool.submit(one, label) for label in order]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            stop.set()
            raise
    return results


def _seconds(finished: Finished) -> str:
    wall = finished.metrics.get("wall_s")
    return f"{wall:.0f} s" if isinstance(wall, float | int) else "unknown"


def _run(
    prepared: Prepared, folder: Path, bars: Bars, stop: threading.Event, label: str
) -> Finished:
    plan = prepared.plan
    total = (plan.guest.barrier_ns - plan.guest.start_ns + plan.agents[0].window.end_ns) / 1e9
    task = bars.add_task(label, total=total, figures="starting")

    def show(progress: Progress, wall_s: float) -> None:
        if stop.is_set():
            raise _StoppedError(label)
        virtual = max(0.0, (progress.virtual_ns - plan.guest.start_ns) / 1e9)
        bars.update(
            task, completed=min(virtual, total),
            figures=f"virtual {virtual:6.1f} s · wall {wall_s:5.0f} s",
        )  # fmt: skip

    try:
        return execute(prepared, folder, show)
    finally:
        bars.remove_task(task)
