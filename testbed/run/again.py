"""Redoes the analysis of a run folder, for ``testbed report``."""

from __future__ import annotations

from pathlib import Path

from testbed.checks import require_run_folder
from testbed.errors import TestbedError, UsageError
from testbed.lab.guest.kernel.cache import cache_root
from testbed.run.calibrate import is_calibration
from testbed.run.execute import Finished, analyse
from testbed.run.mark import read_mark, spoil_again
from testbed.run.underway import refuse_underway
from testbed.scenario import load_recorded


def analyse_again(folder: Path) -> Finished:
    """Metrics, verdict and report of a recorded run, from its events.

    Raises:
        UsageError: ``folder`` is no run folder, that of a calibration, or of a run that is
            still under way; nothing is written there.
        TestbedError: the record cannot be analysed; its verdict is invalid then.
    """
    require_run_folder(folder)
    refuse_underway(folder, cache_root())
    if is_calibration(folder):
        raise UsageError(
            "analyse the run", str(folder),
            f"it holds a calibration: {read_mark(folder) or 'its rows are in fidelity.json'}",
            "testbed calibrate NAME measures anew",
        )  # fmt: skip
    try:
        scenario = load_recorded(folder / "scenario.yaml")
    except TestbedError as error:
        raise spoil_again(
            folder, "record-readable", "The record can be read.", error
        ) from error  # fmt: skip
    return analyse(folder, scenario)
