"""Attends to a run with breakpoints from outside: says where it stands, and lets it go on."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from pathlib import Path

from testbed.contract.breakpoint import go_on, picture_path, standing
from testbed.lab.guest.progress import Progress


def attended(
    run: Path,
    watch: Callable[[Progress, float], None] | None,
    say: Callable[[str], None],
    entered: Callable[[], bool] | None = None,
) -> Callable[[Progress, float], None]:
    """``watch`` with a look at every call at whether the run stands at a breakpoint.

    Args:
        entered: whether somebody pressed Enter since the last call; None asks the terminal.
    """
    pressed = entered or _pressed
    told: set[int] = set()

    def look(progress: Progress, wall_s: float) -> None:
        picture = standing(run)
        if picture is not None:
            if picture.at_ns not in told:
                told.add(picture.at_ns)
                say(
                    f"stands at {picture.at_ns / 1e9:g} s: {picture_path(run, picture.at_ns)}; "
                    f"look with testbed fault look {run}; go on with Enter, or from elsewhere with "
                    f"testbed fault go {run}"
                )
            elif pressed():
                go_on(run)
        if watch is not None:
            watch(progress, wall_s)

    return look


def _pressed() -> bool:
    """A line at the terminal; never where input is none."""
    if not sys.stdin.isatty() or not select.select([sys.stdin], [], [], 0)[0]:
        return False
    return bool(sys.stdin.readline())
