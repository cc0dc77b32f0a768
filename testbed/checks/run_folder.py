"""Whether a folder is one that a run left, before anything is read or written there."""

from __future__ import annotations

from pathlib import Path

from testbed.errors import UsageError

_MARKS = ("plan.json", "workload.jsonl", "events", "provenance.json")


def require_run_folder(folder: Path) -> None:
    """Raises UsageError where ``folder`` does not exist or holds nothing that a run leaves."""
    remedy = "name a folder that `testbed run` made: runs/SCENARIO/START, or its --out"
    if not folder.is_dir():
        raise UsageError("open the run", str(folder), "there is no such folder", remedy)
    if not any((folder / name).exists() for name in _MARKS):
        cause = f"is no run folder: it holds none of {', '.join(_MARKS)}"
        raise UsageError("open the run", str(folder), cause, remedy)
