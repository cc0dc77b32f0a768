"""Samples every link's counters on the virtual clock and writes them as events."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType

from testbed.contract.event import EventLog, Kind
from testbed.lab.tc.applied import Direction
from testbed.lab.tc.counters import DirectionCounters
from testbed.lab.wires import Wires


class _LabClock:
    """Nanoseconds since the barrier."""

    def __init__(self, barrier_ns: int) -> None:
        self._barrier_ns = barrier_ns

    def now_ns(self) -> int:
        """See ``contract.event.Clock``."""
        return time.time_ns() - self._barrier_ns


class Sampler:
    """One LINK_SAMPLE event per link and direction and call.

    ``packets`` counts frames: a superframe counts as all its frames. ``drops`` and ``lost``
    count what was dropped in one piece: a superframe counts once.

    The record begins with a readiness and ends, unless an error ended the lab's work, with a
    stop: so one that was cut short does not look like one that is whole.
    """

    def __init__(self, wires: Wires, path: Path, barrier_ns: int) -> None:
        self._wires = wires
        self._stream = path.open("x", encoding="utf-8")
        self._events = EventLog(self._stream, "lab", _LabClock(barrier_ns))
        self._last = self._read()
        self._last_ns = 0
        self._events.emit(Kind.AGENT_READY, role="lab")

    def __enter__(self) -> Sampler:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._events.emit(Kind.AGENT_STOP, status=0)
        self._events.flush()
        self._stream.close()

    def _read(self) -> dict[tuple[str, str], DirectionCounters]:
        return {
            (name, way.value): getattr(both, way.value)
            for name, both in self._wires.counters().items()
            for way in Direction
        }

    def sample(self, at_ns: int) -> None:
        """Reads all counters; ``at_ns`` is the sample's nominal time since the barrier."""
        counters = self._read()
        for (link, direction), now in counters.items():
            before = self._last[link, direction]
            if now == before and now.backlog_bytes == 0:
                continue  # an idle link has nothing to say
            self._events.emit(
                Kind.LINK_SAMPLE,
                now.bytes - before.bytes,
                at_ns=at_ns,
                link=link,
                dir=direction,
                packets=now.packets - before.packets,
                drops=now.drops - before.drops,
                lost=now.lost - before.lost,
                backlog=now.backlog_bytes,
                interval_ns=at_ns - self._last_ns,
            )
        self._last, self._last_ns = counters, at_ns
