"""Acquire ⇒ ledger ⇒ undo: everything made is written down before it is made.

Undo runs in reverse order on success, failure and signal, and never hides the
first error. In the lab guest the power-off undoes everything as well; the ledger
still proves that nothing else was touched.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from testbed.errors import LabError


class Ledger:
    """An append-only ``ledger.jsonl`` with a stack of undo steps."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8", buffering=1)
        self._undo: list[tuple[str, str, Callable[[], None]]] = []

    def acquire(self, kind: str, name: str, undo: Callable[[], None] | None = None) -> None:
        """Writes down a thing that is about to be made, with the step that unmakes it."""
        self._line("acquire", kind, name)
        if undo is not None:
            self._undo.append((kind, name, undo))

    def undo(self, kind: str, name: str) -> None:
        """Unmakes one thing now, the one of that name that was made last.

        Raises:
            LabError: nothing of that name is there to be unmade; or what the step raises, and
                the thing then stays in the ledger.
        """
        for place in range(len(self._undo) - 1, -1, -1):
            if self._undo[place][:2] == (kind, name):
                self._undo[place][2]()
                del self._undo[place]
                self._line("undo", kind, name)
                return
        raise LabError(f"undo {kind}", name, "the ledger has nothing of that name to undo")

    def undo_all(self) -> tuple[LabError, ...]:
        """Unmakes everything in reverse; returns what failed, swallowing only 'already gone'."""
        faults: list[LabError] = []
        while self._undo:
            kind, name, step = self._undo.pop()
            try:
                step()
                self._line("undo", kind, name)
            except (ProcessLookupError, FileNotFoundError):
                self._line("gone", kind, name)
            except Exception as error:
                self._line("undo-failed", kind, name)
                faults.append(LabError(f"undo {kind}", name, f"{type(error).__name__}: {error}"))
        return tuple(faults)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _line(self, action: str, kind: str, name: str) -> None:
        self._file.write(json.dumps({"action": action, "kind": kind, "name": name}) + "\n")
