"""The history of a run: every event that a check needs, read once and kept small.

Tokens are kept in arrays and the rest in slotted tuples, so that 5,000 requests with
twenty events each take about a second and some tens of MiB. Kinds that no check
reads (``tcp.info``) are counted for completeness and dropped; those of the serving
plane lie in ``plane``. ``req`` is the job of an attempt (``testbed.contract.attempt``)
everywhere but in ``stories``, which the client tells by request.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from testbed.checks.line import Line, job_of, lines
from testbed.checks.moment import Fall, FaultMoment, LinkSample, MachineSample, Moment, Tally
from testbed.checks.pages import PAGE_KINDS, PageStep, page_step
from testbed.checks.plane import PLANE_KINDS, Plane
from testbed.checks.step import NONE, Step, in_order
from testbed.contract.event import Kind
from testbed.errors import AnalysisError


@dataclass(slots=True)
class Story:
    """What the client saw of one request."""

    sent_ns: list[int] = field(default_factory=list)
    token_ns: array[int] = field(default_factory=lambda: array("q"))
    positions: array[int] = field(default_factory=lambda: array("q"))
    tokens: array[int] = field(default_factory=lambda: array("q"))
    sources: list[tuple[int, str]] = field(default_factory=list)
    """(position, instance) wherever tokens begin to come from another instance or attempt."""
    attempts: list[int] = field(default_factory=list)
    """The attempt that each of ``sources`` belongs to."""
    done: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    failed: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sequence:
    """Completeness and order of one node's events.

    Attributes:
        count: how many there are.
        highest: the highest number among them.
        repeated: how many bear a number that another one bears.
        misplaced: how many stand behind one of a higher number.
        backward: numbers of the events that are earlier than the event numbered before.
    """

    count: int
    highest: int
    repeated: int
    misplaced: int = 0
    backward: tuple[int, ...] = ()


@dataclass(slots=True)
class History:
    """All of it. ``steps``, ``connections`` and ``samples`` are in order of (t, node, seq)."""

    stories: dict[int, Story] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    connections: list[Step] = field(default_factory=list)
    """Those opened on demand and closed: no traffic of any request."""
    samples: list[LinkSample] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    sequences: dict[str, Sequence] = field(default_factory=dict)
    prefill_ns: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Per request: start and end of its prefill; NONE where one is missing."""
    matched: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    """Per (instance, request): blocks that its cache held, of how many."""
    decode_ns: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Per request: start and end of its decode; NONE where one is missing."""
    plane: Plane = field(default_factory=Plane)
    pages: list[PageStep] = field(default_factory=list)
    """In order of (t, node, seq), where receivers have pages."""
    tallies: list[Tally] = field(default_factory=list)
    machine: list[MachineSample] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    """Agents that the router lost, and those that a fault of the plan killed, noticed or not: what
    they held or had under way ended with them. That an agent died is the matter of
    ``agents-stopped``."""
    falls: list[Fall] = field(default_factory=list)
    deeds: list[FaultMoment] = field(default_factory=list)
    """Begins and ends of faults, in the order of the record."""
    reached_ns: dict[str, int] = field(default_factory=dict)
    """When what a fault waited for came, by the fault's name."""
    hits: dict[str, int] = field(default_factory=dict)
    """How many connections, transfers or requests a fault hit, by its name."""

    def of(self, *kinds: Kind) -> Iterator[Step]:
        """Yield the steps of these kinds, in order."""
        wanted = frozenset(kinds)
        return (step for step in self.steps if step.kind in wanted)


@dataclass(slots=True)
class _Stamps:
    """Number and time of each event of one node, in the order of the file."""

    numbers: array[int] = field(default_factory=lambda: array("q"))
    times: array[int] = field(default_factory=lambda: array("q"))


_STEPS = frozenset(
    {
        Kind.POOL_QUEUED,
        Kind.POOL_ACQUIRED,
        Kind.POOL_RELEASED,
        Kind.POOL_REFUSED,
        Kind.POOL_JOINED,
        Kind.POOL_LEFT,
        Kind.POOL_SUSPENDED,
        Kind.POOL_RESUMED,
        Kind.CONNECTION_OPENING,
        Kind.TRANSFER_START,
        Kind.TRANSFER_ACKED,
        Kind.TRANSFER_FAILED,
        Kind.KV_BEGIN,
        Kind.KV_VERIFIED,
        Kind.KV_REFUSED,
    }
)
_CONNECTIONS = frozenset({Kind.CONNECTION_OPENED, Kind.CONNECTION_CLOSED})
_WITH_REASON = frozenset(
    {Kind.POOL_REFUSED, Kind.CONNECTION_CLOSED, Kind.TRANSFER_FAILED, Kind.KV_REFUSED}
)
_WITHOUT_PEER = frozenset({Kind.KV_VERIFIED, Kind.KV_REFUSED})
_MOMENTS = frozenset({Kind.BARRIER, Kind.AGENT_READY, Kind.AGENT_STOP})
_UNREAD = frozenset(
    {
        Kind.TCP_INFO,
        Kind.PREFILL_QUEUED,
        Kind.NODE_BACK,
        Kind.SHAPING_LOST,
        Kind.STEP_LATE,
        Kind.INSTANCE_FOUND,
        Kind.RELAY_STAYS,
    }
)
_KINDS = {kind.value: kind for kind in Kind}


def read_history(events: Path) -> History:
    """Read every ``*.jsonl`` of the folder ``events``.

    Raises:
        AnalysisError: there is no event file, or a line is malformed or of unknown kind.
    """
    files = sorted(events.glob("*.jsonl"))
    if not files:
        raise AnalysisError(
            "read events", str(events), "no *.jsonl file", "the run wrote no events; run it again"
        )
    history = History()
    stamps: dict[str, _Stamps] = {}
    for path in files:
        for line in lines(path):
            _take(history, line, stamps)
    for node, seen in stamps.items():
        history.sequences[node] = _sequence(seen)
    for steps in (history.steps, history.connections):
        steps.sort(key=in_order)
    history.samples.sort(key=lambda sample: (sample.t, sample.link, sample.direction))
    history.moments.sort(key=lambda moment: (moment.t, moment.node, moment.seq))
    history.plane.settle()
    history.pages.sort(key=lambda step: (step.t, step.node, step.seq))
    return history


def _sequence(seen: _Stamps) -> Sequence:
    stamps = list(zip(seen.numbers, seen.times, strict=True))
    misplaced = sum(later < earlier for earlier, later in pairwise(seen.numbers))
    if misplaced:
        stamps.sort()
    return Sequence(
        count=len(stamps),
        highest=max(seen.numbers),
        repeated=len(stamps) - len(set(seen.numbers)),
        misplaced=misplaced,
        backward=tuple(number for (_, before), (number, t) in pairwise(stamps) if t < before),
    )


def _take(history: History, line: Line, stamps: dict[str, _Stamps]) -> None:
    text = line.text("kind")
    kind = _KINDS.get(text)
    if kind is None:
        raise line.fault(f"unknown event kind {text!r}")
    t, node, seq = line.integer("t"), line.text("node"), line.integer("seq")
    stamp = stamps.setdefault(node, _Stamps())
    stamp.numbers.append(seq)
    stamp.times.append(t)
    if kind in PLANE_KINDS:
        history.plane.take(line, t, node, seq, kind)
    if kind in _STEPS:
        history.steps.append(_step(line, t, node, seq, kind))
    elif kind in PAGE_KINDS:
        history.pages.append(page_step(line, t, node, seq, kind))
    elif kind in _CONNECTIONS:
        history.connections.append(_step(line, t, node, seq, kind))
    elif kind is Kind.LINK_SAMPLE:
        history.samples.append(_sample(line, t))
    elif kind is Kind.CLOCK_TALLY:
        history.tallies.append(
            Tally(node, line.counts("waits"), line.integer("steps"), line.integer("late"))
        )
    elif kind is Kind.HOST_SAMPLE:
        history.machine.append(
            MachineSample(
                line.integer("steal_ns"), line.integer("busy_ns"), line.integer("interval_ns")
            )
        )
    elif kind in _MOMENTS:
        status = line.integer("status") if kind is Kind.AGENT_STOP else NONE
        history.moments.append(Moment(t, node, seq, kind, status))
    elif kind is Kind.PREFILL_START or kind is Kind.PREFILL_END:
        _span(history.prefill_ns, job_of(line), t, kind is Kind.PREFILL_START)
    elif kind is Kind.DECODE_START or kind is Kind.DECODE_END:
        _span(history.decode_ns, job_of(line), t, kind is Kind.DECODE_START)
    elif kind is Kind.INSTANCE_LOST:
        history.lost.add(line.text("peer"))
    elif kind is Kind.NODE_LOST:
        history.falls.append(Fall(t, line.text("peer"), line.truth("wanted")))
    elif kind is Kind.FAULT_REACHED:
        history.reached_ns.setdefault(line.text("fault"), t)
    elif kind is Kind.FAULT_HIT:
        fault = line.text("fault")
        history.hits[fault] = history.hits.get(fault, 0) + 1
    elif kind is Kind.FAULT_BEGAN or kind is Kind.FAULT_ENDED:
        history.deeds.append(
            FaultMoment(
                t,
                line.text("fault"),
                line.text("subject"),
                kind is Kind.FAULT_BEGAN,
                line.integer_or("hits", NONE),
            )
        )
    elif kind is Kind.CACHE_MATCHED:
        matched = line.integer("blocks"), line.integer("of")
        history.matched[node, job_of(line)] = matched
    elif kind not in _UNREAD and kind not in PLANE_KINDS:
        _tell(history.stories.setdefault(line.integer("req"), Story()), line, t, kind)


def _step(line: Line, t: int, node: str, seq: int, kind: Kind) -> Step:
    return Step(
        t=t,
        node=node,
        seq=seq,
        kind=kind,
        req=NONE if kind is Kind.CONNECTION_CLOSED else job_of(line),
        size=line.integer("size"),
        peer="" if kind in _WITHOUT_PEER else line.text("peer"),
        conn=line.integer_or("conn", NONE),
        busy=line.integer_or("busy", NONE),
        waiting=line.integer_or("waiting", NONE),
        wait_ns=line.integer("wait_ns") if kind is Kind.POOL_ACQUIRED else NONE,
        duration_ns=line.integer("duration_ns") if kind is Kind.TRANSFER_ACKED else NONE,
        reason=line.text("reason") if kind in _WITH_REASON else "",
        blocks=line.integer_or("blocks", NONE),
        turns=line.integer_or("turns", 1),
        unequal=line.integer_or("unequal", 0),
        missing=line.integer_or("missing", 0),
    )


def _sample(line: Line, t: int) -> LinkSample:
    return LinkSample(
        t=t,
        link=line.text("link"),
        direction=line.text("dir"),
        size=line.integer("size"),
        packets=line.integer("packets"),
        drops=line.integer("drops"),
        backlog=line.integer("backlog"),
        interval_ns=line.integer("interval_ns"),
        lost=line.integer_or("lost", 0),
    )


def _span(spans: dict[int, tuple[int, int]], req: int, t: int, start: bool) -> None:
    begin, end = spans.get(req, (NONE, NONE))
    spans[req] = (t, end) if start else (begin, t)


def _tell(story: Story, line: Line, t: int, kind: Kind) -> None:
    if kind is Kind.REQUEST_SENT:
        story.sent_ns.append(t)
    elif kind is Kind.TOKEN:
        position, source = line.integer("pos"), line.text_or_none("source") or ""
        attempt = line.integer_or("attempt", 0)
        if not story.sources or (story.sources[-1][1], story.attempts[-1]) != (source, attempt):
            story.sources.append((position, source))
            story.attempts.append(attempt)
        story.token_ns.append(t)
        story.positions.append(position)
        story.tokens.append(line.integer("token"))
    elif kind is Kind.REQUEST_DONE:
        story.done.append((t, line.integers("tokens")))
    elif kind is Kind.REQUEST_FAILED:
        story.failed.append((t, line.text("reason")))
