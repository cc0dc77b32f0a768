"""The one change to the kernel's source: timers of the virtual clock fire on whole quanta.

Under time travel the guest's clock counts in quanta of 256 ns, but a timer event is
placed at the exact time plus 1 ns. So each event moves the hidden part below the
quantum by one, and how every later delay is rounded depends on how many timers ever
fired, among them the kernel's own at random times (the neighbour tables' collector). Whoever
changes the entropy, for example through ``mem=`` on the command line, then sees a
round trip differ by up to a quantum a hop. Rounding each event up to a whole quantum
keeps that hidden part at zero for ever.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from testbed.errors import UsageError

FILE = Path("arch/um/kernel/time.c")
_EVENT = re.compile(
    r"(static int itimer_next_event\(.*?time_travel_add_event\(&time_travel_timer_event,\s*)"
    r"time_travel_time \+ delta(\);)",
    re.DOTALL,
)
_ROUNDED = r"\1roundup(time_travel_time + delta, TIMER_MULTIPLIER)\2"


def round_timer_events(tree: Path) -> None:
    """Changes the copy of the source in ``tree``; a link is replaced, not followed.

    Raises:
        UsageError: this source sets its timer events in a way that is not known.
    """
    path = tree / FILE
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise _unknown(tree, f"{FILE}: {error.strerror}") from error
    changed, count = _EVENT.subn(_ROUNDED, text)
    if count != 1:
        raise _unknown(tree, f"{FILE} places the timer event in {count} known ways, not one")
    fresh = path.with_name("time.c.fresh")
    fresh.write_text(changed, "utf-8")
    os.replace(fresh, path)


def _unknown(tree: Path, cause: str) -> UsageError:
    return UsageError(
        "prepare the kernel source", str(tree), cause,
        "take another version; Debian's linux-source-6.12 is known to work",
    )  # fmt: skip
