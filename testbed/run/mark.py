"""The mark of a run that did not reach its end, and what a later analysis makes of it.

The mark is a verdict of its own, ``invalid`` by ``run-took-place``. Without it a folder whose
orchestrator was killed would look like a run that merely was not judged yet.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.checks import spoil
from testbed.checks.case import Case
from testbed.checks.finding import Finding, Status, found
from testbed.checks.record_complete import RecordComplete
from testbed.checks.verdict import read_verdict
from testbed.errors import AnalysisError, TestbedError
from testbed.lab.hostledger import HostLedger, Kind

TOOK_PLACE = "run-took-place"
_CLAIM = "The run took place to its end."


@dataclass(frozen=True, slots=True)
class TookPlace:
    """The check that stands for a mark: it holds only where the record is whole after all."""

    cause: str
    name: str = TOOK_PLACE
    claim: str = _CLAIM

    def examine(self, case: Case) -> Finding:
        """A run interrupted while it was analysed left a whole record; any other did not."""
        whole = RecordComplete().examine(case).status is Status.PASS
        evidence = "the record is whole; only its analysis had not come to an end"
        broken = () if whole else (self.cause,)
        return found(self.name, self.claim, evidence if whole else self.cause, broken,
                     Status.INVALID)  # fmt: skip


def read_mark(run: Path) -> str | None:
    """Why the run did not reach its end, where its verdict says so."""
    if not (run / "verdict.json").is_file():
        return None
    try:
        findings = read_verdict(run / "verdict.json").findings
    except AnalysisError:
        return None
    broken = [f for f in findings if f.check == TOOK_PLACE and f.status is Status.INVALID]
    return broken[0].evidence if broken else None


def mark_unfinished(run: Path, error: BaseException) -> None:
    """Leaves no folder that looks like a run which merely was not judged yet."""
    if isinstance(error, TestbedError):
        spoil(run, TOOK_PLACE, _CLAIM, error)
    elif isinstance(error, Exception):
        _write(run, f"{type(error).__name__}: {error}".rstrip(": "))
    else:
        _write(run, "interrupted by Ctrl-C or a signal")


def mark_dead(run: Path, owner: int) -> None:
    """Marks a run whose orchestrator is gone as interrupted, as Ctrl-C would have."""
    _write(run, f"interrupted: its orchestrator, process {owner}, died; testbed gc found it so")


@contextlib.contextmanager
def marked_unless_finished(run: Path, ledger: HostLedger) -> Iterator[None]:
    """The life of a run folder after it was made: whatever ends it early leaves the mark.

    A failed analysis has given its verdict already. A full disk may keep the mark from being
    written; that must not hide what went wrong, and the ledger keeps the folder then, for
    ``testbed gc``.
    """
    try:
        yield
    except BaseException as error:
        judged = isinstance(error, TestbedError) and (run / "verdict.json").is_file()
        with contextlib.suppress(OSError):
            if not judged:
                mark_unfinished(run, error)
            ledger.release(Kind.RUN, run)
        raise
    ledger.release(Kind.RUN, run)


def spoil_again(run: Path, check: str, claim: str, error: TestbedError) -> TestbedError:
    """Spoils a run whose analysis failed; one that carries the mark keeps it.

    Returns:
        The error to raise: it says first that the run never reached its end.
    """
    mark = read_mark(run)
    if mark is None:
        spoil(run, check, claim, error)
        return error
    _write(run, mark)
    return AnalysisError(
        "analyse the run", str(run),
        f"the run never reached its end ({mark.splitlines()[0]}), and its record cannot be read: "
        f"{error.cause}",
        "run the scenario again",
    )  # fmt: skip


def _write(run: Path, cause: str) -> None:
    spoil(run, TOOK_PLACE, _CLAIM, InterruptedError(cause))
