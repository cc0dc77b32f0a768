"""How a long step tells its caller where it is."""

from __future__ import annotations

import sys
import time
from typing import Protocol, TextIO


class Progress(Protocol):
    """Receives every step and the share of the whole that is done (0 to 1)."""

    def __call__(self, step: str, share: float, /) -> None: ...


def silent(step: str, share: float, /) -> None:
    """Says nothing."""


class ProgressLine:
    """One line, rewritten on a terminal; on anything else a new line every tenth."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._began = time.monotonic()
        self._shown: tuple[str, int] | None = None

    def __call__(self, step: str, share: float, /) -> None:
        percent = int(share * 100)
        state = (step, percent) if self._terminal else (step.split()[0], percent // 10)
        if state == self._shown:
            return
        self._shown = state
        seconds = int(time.monotonic() - self._began)
        text = f"kernel {percent:3d} %  {seconds // 60}:{seconds % 60:02d}  {step}"
        self._stream.write(f"\r{text:<78}" if self._terminal else f"{text}\n")
        self._stream.flush()

    def close(self) -> None:
        """Leaves the terminal's cursor on a fresh line."""
        if self._terminal and self._shown is not None:
            self._stream.write("\n")
            self._stream.flush()
