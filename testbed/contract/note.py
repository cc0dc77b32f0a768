"""Which run the containers of a machine are about, where they mount the folder of all runs.

::

    runs/.compose/run       the run folder, relative to runs; written by the planner
    runs/<scenario>/<start>-s<seed>/
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from testbed.contract.meeting import drain, watched
from testbed.errors import ExitStatus, LabError

_NOTES, _NOTE = ".compose", "run"
_REFUSED = "refused "
_IN_MOVED_TO, _IN_CREATE = 0x80, 0x100
_LOOK_AGAIN_S = 1.0


def open_notes(runs: Path) -> Path:
    """The folder for notes: anyone may write there, as users may change from run to run.

    Raises:
        OSError: it cannot be made.
    """
    notes = runs / _NOTES
    if not notes.is_dir():
        notes.mkdir()
        notes.chmod(0o777)
    return notes


def name_run(runs: Path, run: Path) -> None:
    """Notes a run.

    Raises:
        OSError: it cannot be written.
    """
    _write(open_notes(runs), str(run.relative_to(runs)))


def name_refusal(runs: Path, status: int) -> None:
    """Notes that there is no run, and the exit status that stands for the reason.

    Raises:
        OSError: it cannot be written.
    """
    _write(open_notes(runs), f"{_REFUSED}{status}")


def forget_run(runs: Path) -> None:
    """Takes back what is noted.

    Raises:
        OSError: it cannot be removed.
    """
    (runs / _NOTES / _NOTE).unlink(missing_ok=True)


class NoRunError(LabError):
    """No run is noted: the planner refused. ``status`` says why, as exit statuses do."""

    def __init__(self, runs: Path, status: ExitStatus) -> None:
        self.status = status
        super().__init__(
            "find the run", str(runs), "the planner made none", "see what the planner says"
        )


def run_of(folder: Path) -> Path:
    """The run folder: ``folder`` itself, or the one that is noted in it.

    Raises:
        NoRunError: neither.
    """
    if (folder / "plan.json").is_file():
        return folder
    try:
        noted = (folder / _NOTES / _NOTE).read_text(encoding="utf-8")
    except OSError as error:
        raise NoRunError(folder, ExitStatus.USAGE) from error
    if noted.startswith(_REFUSED):
        raise NoRunError(folder, ExitStatus(int(noted.removeprefix(_REFUSED))))
    return folder / noted


def next_run(runs: Path, since_ns: int, until_ns: int) -> Path:
    """The run folder, as soon as it is noted; a note from before ``since_ns`` is an earlier run's.

    Args:
        since_ns, until_ns: CLOCK_REALTIME.

    Raises:
        NoRunError: the planner refused, or said nothing in time.
    """
    notes = runs / _NOTES
    while not _is_newer(notes / _NOTE, since_ns):
        left = (until_ns - time.time_ns()) / 1e9
        if left <= 0:
            raise NoRunError(runs, ExitStatus.USAGE)
        with watched(notes if notes.is_dir() else runs, _IN_MOVED_TO | _IN_CREATE) as news:
            if not _is_newer(notes / _NOTE, since_ns):
                drain(news, min(left, _LOOK_AGAIN_S))
    return run_of(runs)


def _write(notes: Path, words: str) -> None:
    draft = notes / f".{_NOTE}.{os.getpid()}"
    draft.write_text(words, encoding="utf-8")
    draft.rename(notes / _NOTE)


def _is_newer(note: Path, since_ns: int) -> bool:
    try:
        return note.stat().st_mtime_ns >= since_ns
    except FileNotFoundError:
        return False
