"""Watches the machine during a live run: how much of its processors others took away.

A hypervisor's theft shows nowhere inside the guest, so the orchestrator samples it outside and
adds it to the record as the events of node ``host``.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from testbed.contract.event import EventLog, Kind
from testbed.contract.lateness import BARRIER_FILE, HOST
from testbed.contract.scale import Scale

EVERY_NS = 1_000_000_000
_STAT = Path("/proc/stat")
_IDLE, _WAITING, _STEAL, _GUEST = 3, 4, 7, 8
"""Positions in the line of all processors; see proc_stat(5). Guests are counted as users, too."""


@dataclass(frozen=True, slots=True)
class Reading:
    """CLOCK_REALTIME, and nanoseconds of all processors together since boot."""

    at_ns: int
    total_ns: int
    busy_ns: int
    steal_ns: int


def reading_of(stat: str, at_ns: int, ticks_per_s: int) -> Reading:
    """From the text of /proc/stat."""
    ticks = [int(word) for word in stat.split("\n", 1)[0].split()[1 : 1 + _GUEST]]
    total, steal = sum(ticks), ticks[_STEAL] if len(ticks) > _STEAL else 0
    busy = total - ticks[_IDLE] - ticks[_WAITING] - steal
    tick_ns = 10**9 // ticks_per_s
    return Reading(at_ns, total * tick_ns, busy * tick_ns, steal * tick_ns)


class HostWatch:
    """Reads at most once a second, whoever calls how often; a reading is one small file."""

    def __init__(self, every_ns: int = EVERY_NS) -> None:
        self._every_ns = every_ns
        self._readings: list[Reading] = []
        self._next_ns = 0

    def look(self) -> None:
        """Read, if it is time to."""
        now_ns = time.monotonic_ns()
        if now_ns < self._next_ns:
            return
        self._next_ns = now_ns + self._every_ns
        text = _STAT.read_text(encoding="ascii")
        self._readings.append(reading_of(text, time.time_ns(), os.sysconf("SC_CLK_TCK")))

    def tell(self, run: Path, scale: Scale) -> None:
        """Write what was seen from the barrier on; nothing where no barrier was passed."""
        barrier = run / BARRIER_FILE
        if not barrier.is_file():
            return
        barrier_ns = int(barrier.read_text(encoding="ascii"))
        with (run / "events" / f"{HOST}.jsonl").open("x", encoding="utf-8") as stream:
            events = EventLog(stream, HOST, _Never())
            for before, after in zip(self._readings, self._readings[1:], strict=False):
                if before.at_ns >= barrier_ns:
                    events.emit(
                        Kind.HOST_SAMPLE,
                        at_ns=scale.emulated_ns(after.at_ns - barrier_ns),
                        steal_ns=after.steal_ns - before.steal_ns,
                        busy_ns=after.busy_ns - before.busy_ns,
                        interval_ns=after.total_ns - before.total_ns,
                    )
            events.flush()


class _Never:
    """Every event here says its time itself."""

    def now_ns(self) -> int:
        return 0
