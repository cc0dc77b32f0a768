"""One schedule, run in the ordinary way: scenario file, run folder, verdict, outcome."""

from __future__ import annotations

import re
import shutil
import threading
import time
from pathlib import Path

from testbed.errors import (
    AgentError,
    AnalysisError,
    FidelityError,
    LabError,
    PlanError,
    ScenarioError,
    TestbedError,
)
from testbed.lab.guest.progress import Progress
from testbed.run.execute import Tuning, execute
from testbed.run.prepare import prepare
from testbed.soak.outcome import Outcome, of_error, of_verdict, refused

FOUND = (AgentError, AnalysisError, FidelityError, LabError)
"""Errors that are a finding of a run; others end the soak."""


class StoppedError(TestbedError):
    """The soak was interrupted: end this guest."""

    def __init__(self, subject: str) -> None:
        super().__init__("go on with the run", subject, "the soak was ended", "go on with --resume")


def attempt(
    scenario: Path, folder: Path, stop: threading.Event, stuck_after_s: float, keep: bool
) -> Outcome:
    """Runs a scenario file and says what came of it.

    Args:
        folder: of the run. What an earlier soak that was ended left there is removed. Kept where
            the run is a finding, or ``keep``.
        stuck_after_s: wall seconds without progress after which a run hangs.

    Raises:
        TestbedError: the machine cannot run it, or the soak was stopped.
    """
    begun = time.monotonic()
    try:
        prepared = prepare(str(scenario), place=folder.parent)
    except (PlanError, ScenarioError) as error:
        return refused(error)
    if folder.exists():
        shutil.rmtree(folder)

    def watch(progress: Progress, wall_s: float) -> None:
        if stop.is_set():
            raise StoppedError(scenario.stem)

    try:
        done = execute(prepared, folder, watch, Tuning(stuck_after_s=stuck_after_s))
    except FOUND as error:
        return of_error(error, _log_of(folder, error), time.monotonic() - begun)
    timeline = done.metrics.get("timeline_sha256")
    outcome = of_verdict(
        done.verdict, timeline if isinstance(timeline, str) else None, time.monotonic() - begun
    )
    if not outcome.is_finding and not keep:
        shutil.rmtree(folder)
    return outcome


def _log_of(folder: Path, error: TestbedError) -> str:
    """The log of the agent that an error names."""
    path = folder / "logs" / f"{error.subject}.log"
    if re.fullmatch(r"[a-z0-9-]+", error.subject) and path.is_file():
        return path.read_text(encoding="utf-8", errors="replace")
    return ""
