"""Samples every link's counters on the lab's clock and writes them as events."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

from testbed.contract.event import EventLog, Kind, Value
from testbed.contract.lateness import Lateness
from testbed.contract.scale import FULL, Scale
from testbed.lab.tc.applied import Direction
from testbed.lab.tc.counters import DirectionCounters
from testbed.lab.wires import Wires

_FRESH = DirectionCounters(0, 0, 0, 0, 0, 0)


class _LabClock:
    """Emulated nanoseconds since the barrier."""

    def __init__(self, barrier_ns: int, scale: Scale) -> None:
        self._barrier_ns = barrier_ns
        self._scale = scale

    def now_ns(self) -> int:
        """See ``contract.event.Clock``."""
        return self._scale.emulated_ns(time.time_ns() - self._barrier_ns)


class Sampler:
    """One LINK_SAMPLE event per link and direction and call.

    ``packets`` counts frames: a superframe counts as all its frames. ``drops`` and ``lost``
    count what was dropped in one piece: a superframe counts once.

    The record begins with a readiness and ends, unless an error ended the lab's work, with a
    stop: so one that was cut short does not look like one that is whole.
    """

    def __init__(
        self, wires: Wires, path: Path, barrier_ns: int, scale: Scale = FULL, live: bool = False
    ) -> None:
        """``live``: the clock is real, so how late samples are is told at the end."""
        self.lateness = Lateness()
        self._live = live
        self._wires = wires
        self._stream = path.open("x", encoding="utf-8")
        self._clock = _LabClock(barrier_ns, scale)
        self._events = EventLog(self._stream, "lab", self._clock)
        self._last = self._read()
        self._last_ns = 0
        self._noted_ns = 0
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
            if self._live:
                self.lateness.tell(self._events)
            self._events.emit(Kind.AGENT_STOP, status=0)
        self._events.flush()
        self._stream.close()

    def _read(self) -> dict[tuple[str, str], DirectionCounters]:
        return {
            (name, way.value): getattr(both, way.value)
            for name, both in self._wires.counters().items()
            for way in Direction
        }

    @property
    def latest(self) -> Mapping[tuple[str, str], DirectionCounters]:
        """What the last sample read, by link and direction."""
        return self._last

    def note(self, kind: Kind, **fields: Value) -> int:
        """Writes one event that is no sample, as of now; returns its time since the barrier."""
        self._noted_ns = self._events.emit(kind, 0, at_ns=None, **fields)
        return self._noted_ns

    def renew(self, links: Iterable[str]) -> None:
        """Counts these links from nothing: they were shaped anew."""
        for name in links:
            for way in Direction:
                self._last[name, way.value] = _FRESH

    def sample_now(self) -> None:
        """Reads all counters as of now, between two nominal samples."""
        self._noted_ns = self._clock.now_ns()
        self.sample(self._noted_ns)

    def sample(self, at_ns: int) -> None:
        """Reads all counters; ``at_ns`` is the nominal emulated time since the barrier.

        A sample that comes late because something else took its time bears the time of that.
        """
        at_ns = max(at_ns, self._noted_ns)
        counters = self._read()
        for (link, direction), now in counters.items():
            before = self._last.get((link, direction), _FRESH)
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
