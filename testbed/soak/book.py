"""The folder of a soak: what was asked, every run by its fingerprint, findings, the summary.

::

    <out>/soak-of.json          scenario, seed, code and kernel: what all runs have in common
    <out>/runs.jsonl            one line a run: fingerprint, number (null for a candidate), outcome
    <out>/schedules/0017.yaml   the scenario of schedule 17; testbed run takes it
    <out>/failing/0017/         its run folder, where it is a finding (or all are kept)
    <out>/minimal/0017.yaml     the least that fails like 17
    <out>/soak.json             the summary
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from testbed.contract.record import Record
from testbed.errors import UsageError
from testbed.run.folder import write_json
from testbed.soak.outcome import Outcome

_OF, _RUNS = "soak-of.json", "runs.jsonl"
_PARTS = ("schedules", "failing", "minimal", "candidates")


class Entry(Record):
    """One run of a soak.

    Attributes:
        key: fingerprint of its seed and faults.
        number: of its schedule; None for a candidate of the shrinker.
        kinds: kinds of its faults.
    """

    key: str
    number: int | None
    kinds: tuple[str, ...]
    outcome: Outcome


class Book:
    """The record of a soak on disk; every line is whole, or was never written. Thread-safe."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._numbers: dict[int, Entry] = {}

    def open(self, of: Mapping[str, object], resume: bool) -> None:
        """Begins a soak in a new folder, or goes on with the one that is there.

        Raises:
            UsageError: the folder holds something else, a soak of something else, or a soak that
                was not to be gone on with.
        """
        attempt, another = "soak", "choose another folder with --out"
        path = self.out / _OF
        there = self.out.is_dir() and any(self.out.iterdir())
        if there and not path.is_file():
            raise UsageError(attempt, str(self.out), "it holds something else", another)
        if there and not resume:
            raise UsageError(
                attempt,
                str(self.out),
                "a soak is there already",
                f"go on with --resume, or {another}",
            )
        if there:
            known: object = json.loads(path.read_text(encoding="utf-8"))
            if known != dict(of):
                raise UsageError(
                    attempt, str(self.out),
                    "its runs are of another scenario, seed, code or kernel", another,
                )  # fmt: skip
            self._read()
        for part in _PARTS:
            (self.out / part).mkdir(parents=True, exist_ok=True)
        if not there:
            write_json(path, dict(of))

    def _read(self) -> None:
        path = self.out / _RUNS
        if not path.is_file():
            return
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                self._take(Entry.model_validate_json(line))
            except ValidationError:
                continue  # the last line of a soak that was killed: that run is made again

    def _take(self, entry: Entry) -> None:
        self._entries[entry.key] = entry
        if entry.number is not None:
            self._numbers[entry.number] = entry

    def known(self, key: str) -> Outcome | None:
        """What came of a run that was made before."""
        with self._lock:
            entry = self._entries.get(key)
            return None if entry is None else entry.outcome

    def numbered(self) -> dict[int, Entry]:
        """Every schedule that was run, by its number, in order."""
        with self._lock:
            return dict(sorted(self._numbers.items()))

    def note(self, entry: Entry) -> None:
        """Writes a run down."""
        with self._lock:
            self._take(entry)
            with (self.out / _RUNS).open("a", encoding="utf-8") as file:
                file.write(entry.model_dump_json() + "\n")

    def schedule_file(self, number: int) -> Path:
        """The scenario of a schedule."""
        return self.out / "schedules" / f"{number:04}.yaml"

    def minimal_file(self, number: int) -> Path:
        """The least that fails like a schedule."""
        return self.out / "minimal" / f"{number:04}.yaml"

    def run_folder(self, number: int) -> Path:
        """The run folder of a schedule."""
        return self.out / "failing" / f"{number:04}"
