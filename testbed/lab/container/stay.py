"""The end of a container's program: it stays until Docker stops it."""

from __future__ import annotations

import os
import select
import signal
import sys
from types import FrameType

_STOPS = (signal.SIGTERM, signal.SIGINT)


def end_when_stopped() -> None:
    """From now on being stopped ends the program with status 0, and closes what is open."""
    for number in _STOPS:
        signal.signal(number, _end)


def stay() -> None:
    """Returns when the container is stopped, whichever thread the kernel tells of it."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in _STOPS:
        signal.signal(number, _note)
    select.select([reader], [], [])


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(0)


def _note(number: int, frame: FrameType | None) -> None:
    pass
