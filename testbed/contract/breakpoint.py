"""Where a run under the virtual clock stands still, and what a look at it then shows.

::

    guest: writes breakpoints/<time>.json, makes HOLD, calls utime() on it again and again
    host:  reads the picture; removes HOLD ──▶ the guest's next call fails, and it goes on

A call that the host answers takes no virtual time, so the run is none the wiser. HOLD is a
progress mark as well, so that a run that stands is not taken for one that is stuck.
"""

from __future__ import annotations

from pathlib import Path

from testbed.contract.progress import FOLDER
from testbed.contract.record import Record

STEP_NS = 100_000_000
"""Emulated time between two samples of the links; a run stands only where it wakes anyway."""
PICTURES = "breakpoints"
HOLD = f"{FOLDER}/breakpoint"


class Passage(Record):
    """One direction of a link since it was applied; see ``lab.tc.counters``."""

    link: str
    direction: str
    bytes: int
    packets: int
    drops: int
    lost: int
    backlog_bytes: int
    flight_bytes: int


class Socket(Record):
    """A TCP socket of a node, as its kernel lists it.

    ``unsent`` is what the other end has not acknowledged, ``unread`` what the program has not
    read; of a listener ``unread`` counts connections that nobody has accepted.
    """

    state: str
    here: str
    there: str
    unsent: int
    unread: int


class Picture(Record):
    """What stood where; ``at_ns`` is emulated time since the barrier."""

    at_ns: int
    links: tuple[Passage, ...]
    sockets: dict[str, tuple[Socket, ...]]


def picture_path(run: Path, at_ns: int) -> Path:
    """``breakpoints/12s.json``; of parts of a second ``breakpoints/2500ms.json``."""
    milliseconds = at_ns // 10**6
    name = f"{milliseconds}ms" if milliseconds % 1000 else f"{milliseconds // 1000}s"
    return run / PICTURES / f"{name}.json"


def standing(run: Path) -> Picture | None:
    """Where a run stands now; None where it does not."""
    try:
        path = Path((run / HOLD).read_text(encoding="ascii"))
        return Picture.model_validate_json((run / path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def go_on(run: Path) -> bool:
    """Lets a standing run go on; False where it does not stand."""
    try:
        (run / HOLD).unlink()
    except FileNotFoundError:
        return False
    return True
