"""What a record has beside transfers and tokens: samples, moments of a node, faults."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.checks.step import NONE
from testbed.contract.event import Kind


@dataclass(frozen=True, slots=True)
class LinkSample:
    """Counters of one direction of a link over ``interval_ns`` that ended at ``t``."""

    t: int
    link: str
    direction: str
    size: int
    packets: int
    drops: int
    backlog: int
    interval_ns: int
    lost: int = 0
    """Taken by the delay stage: a loss model, or a fault."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A barrier, readiness or stop of one node; ``status`` only for stops."""

    t: int
    node: str
    seq: int
    kind: Kind
    status: int = NONE


@dataclass(frozen=True, slots=True)
class Tally:
    """What one process counted of its own lateness: waits by bucket, steps, late steps."""

    node: str
    waits: dict[int, int]
    steps: int
    late_steps: int


@dataclass(frozen=True, slots=True)
class Fall:
    """The end of a node's container, for good or not; a wire's counters end with it."""

    t: int
    node: str
    wanted: bool
    """Whether a fault of the run made it end."""


@dataclass(frozen=True, slots=True)
class FaultMoment:
    """A fault came into force on something, or was undone there."""

    t: int
    fault: str
    subject: str
    began: bool
    hits: int = NONE
    """Frames, connections or bytes, where it counts them and is over."""


@dataclass(frozen=True, slots=True)
class MachineSample:
    """Time of all processors of the machine: taken away by others, busy, and in all."""

    steal_ns: int
    busy_ns: int
    interval_ns: int
