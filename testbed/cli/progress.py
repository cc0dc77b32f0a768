"""The progress bar of a run: virtual time, wall time, speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars

from testbed.contract.plan import Plan
from testbed.lab.guest.progress import Progress


@contextmanager
def progress_bar(plan: Plan, console: Console) -> Iterator[Callable[[Progress, float], None]]:
    """Yields the function that a guest's watcher calls."""
    start, barrier = plan.guest.start_ns / 1e9, plan.guest.barrier_ns / 1e9
    total = barrier - start + plan.agents[0].window.end_ns / 1e9
    live = plan.clock == "real"
    if live:
        total = plan.estimate.wall_s
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=28),
        TextColumn("{task.fields[figures]}"),
    )
    with Bars(*columns, console=console, transient=not console.is_terminal) as bars:
        task = bars.add_task(plan.scenario, total=total, figures="starting the lab guest")

        def show(progress: Progress, wall_s: float) -> None:
            virtual = max(0.0, progress.virtual_ns / 1e9 - start)
            done = max(0.0, virtual - (barrier - start))
            speed = done / wall_s if wall_s > 0 else 0.0
            bars.update(
                task,
                completed=min(wall_s if live else virtual, total),
                figures=f"real clock · wall {wall_s:6.1f} s"
                if live
                else f"virtual {done:7.2f} s · wall {wall_s:6.1f} s · {speed:5.2f} x",
            )

        yield show
