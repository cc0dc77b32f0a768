"""A run's record, indexed for questions about one request, one pair, one link, one moment."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from testbed.contract.event import Kind
from testbed.contract.fault import LinkFault, NodeFault, PlannedFault, ResetFault, TrafficFault
from testbed.metrics.attribution.cause import MILESTONES
from testbed.metrics.attribution.intervals import Interval
from testbed.metrics.attribution.ways import Way
from testbed.metrics.events import Events
from testbed.metrics.run import Run
from testbed.metrics.table import Codes, Integers

Pair = tuple[str, str]


class Mark(NamedTuple):
    """One event of a request; ``peer`` is empty where it has none."""

    t: int
    node: str
    peer: str


@dataclass(slots=True)
class Sent:
    """One transfer, from the connection that it was given on."""

    req: int
    pair: Pair
    conn: int
    begin: int
    end: int
    size: int = 0
    retrans: int = 0
    cwnd: int = -1
    rtt_us: int = -1
    lent: list[Interval] = field(default_factory=list)


class Sample(NamedTuple):
    """Counters of one direction of a link over an interval."""

    begin: int
    end: int
    size: int
    drops: int
    lost: int
    backlog: int


@dataclass(frozen=True, slots=True)
class Force:
    """A fault in force on one link or node, from ``begin`` to ``end``."""

    fault: PlannedFault
    subject: str
    begin: int
    end: int

    @property
    def kind(self) -> str:
        """The word that a scenario has for it."""
        match self.fault:
            case NodeFault(act=act):
                return act
            case ResetFault():
                return "reset"
            case TrafficFault():
                return "traffic"
            case _:
                return self.fault.effect.kind

    def acts(self, way: Way) -> bool:
        """Whether it acts on this direction of a link."""
        if not isinstance(self.fault, LinkFault) or self.subject != way.link:
            return False
        return self.fault.forward if way.direction == "forward" else self.fault.backward


_MARKED = (Kind.REQUEST_SENT, *(kind for kind, _ in MILESTONES), Kind.SEQUENCE_PREEMPTED)


class Past:
    """See the module. Built once a run, in time linear in its events."""

    def __init__(self, run: Run, events: Events) -> None:
        self.last_ns = int(
            max((table.t[-1] for table in events.tables.values() if table.t.size), default=0)
        )
        self._marks = _marks(events)
        self.forces = _forces(run, events, self.last_ns)
        self._samples = _samples(events)
        self._sample_edges = {
            way: ([one.end for one in own], [one.begin for one in own])
            for way, own in self._samples.items()
        }
        self.sent = _sent(events, self.last_ns)
        self._of_pair: dict[Pair, list[Sent]] = defaultdict(list)
        self._of_request: dict[tuple[int, Pair], list[Sent]] = defaultdict(list)
        for one in self.sent:
            self._of_pair[one.pair].append(one)
            self._of_request[one.req, one.pair].append(one)
        self._begins = {pair: [one.begin for one in own] for pair, own in self._of_pair.items()}
        self._longest = {
            pair: max(one.end - one.begin for one in own) for pair, own in self._of_pair.items()
        }

    def last(self, kind: Kind, req: int, until: int, node: str = "", peer: str = "") -> Mark | None:
        """The last event of a request at or before ``until``, at a node or with a peer."""
        own = self._marks.get((kind, req), ())
        for mark in reversed(own):
            if mark.t <= until and node in ("", mark.node) and peer in ("", mark.peer):
                return mark
        return None

    def transfer(self, req: int, pair: Pair, begin: int, end: int) -> Sent | None:
        """The transfer of a request that was under way then."""
        for one in reversed(self._of_request.get((req, pair), ())):
            if one.begin < end and begin < one.end:
                return one
        return None

    def under_way(self, pair: Pair, begin: int, end: int) -> list[Sent]:
        """All transfers of a pair that overlap an interval, by begin."""
        own = self._of_pair.get(pair, [])
        if not own:
            return []
        first = bisect_left(self._begins[pair], begin - self._longest[pair])
        last = bisect_left(self._begins[pair], end)
        return [one for one in own[first:last] if one.end > begin]

    def samples(self, way: Way, begin: int, end: int) -> Sequence[Sample]:
        """Those of one direction of a link whose intervals overlap this one."""
        known = self._samples.get(way, ())
        ends, begins = self._sample_edges.get(way, ((), ()))
        return known[bisect_right(ends, begin) : bisect_left(begins, end)]


def _rows(*columns: Integers | Codes) -> Iterator[tuple[int, ...]]:
    return zip(*(column.tolist() for column in columns), strict=True)


def _marks(events: Events) -> dict[tuple[Kind, int], list[Mark]]:
    marks: dict[tuple[Kind, int], list[Mark]] = defaultdict(list)
    names = events.names
    for kind in _MARKED:
        table = events[kind]
        peers = table.texts.get("peer")
        columns = (table.req.tolist(), table.t.tolist(), table.node.tolist())
        others = [""] * table.t.size if peers is None else [names[code] for code in peers.tolist()]
        for req, t, node, peer in zip(*columns, others, strict=True):
            marks[kind, req].append(Mark(t, names[node], peer))
    return marks


def _forces(run: Run, events: Events, last_ns: int) -> tuple[Force, ...]:
    """As the record has them, not as the plan would like them to be."""
    faults = {fault.name: fault for fault in run.plan.faults}
    began, ended = events[Kind.FAULT_BEGAN], events[Kind.FAULT_ENDED]
    ends: dict[Pair, list[int]] = defaultdict(list)
    for t, fault, subject in _rows(ended.t, *ended.texts.values()):
        ends[events.names[fault], events.names[subject]].append(t)
    found: list[Force] = []
    for t, fault, subject in _rows(began.t, *began.texts.values()):
        name, where = events.names[fault], events.names[subject]
        if name in faults:
            end = next((at for at in ends[name, where] if at >= t), last_ns)
            found.append(Force(faults[name], where, t, end))
    return tuple(found)


def _samples(events: Events) -> dict[Way, list[Sample]]:
    table = events[Kind.LINK_SAMPLE]
    found: dict[Way, list[Sample]] = defaultdict(list)
    numbers = [table.integers[name] for name in ("interval_ns", "drops", "lost", "backlog")]
    where = (table.texts["link"], table.texts["dir"])
    for link, direction, t, size, interval, drops, lost, backlog in _rows(
        *where, table.t, table.size, *numbers
    ):
        way = Way(events.names[link], events.names[direction])
        found[way].append(Sample(t - interval, t, size, drops, max(lost, 0), backlog))
    return found


def _sent(events: Events, last_ns: int) -> list[Sent]:
    """All transfers by begin; one that never ended is under way to the end of the record."""
    names = events.names
    acquired = events[Kind.POOL_ACQUIRED]
    peers, conns = acquired.texts["peer"], acquired.integers["conn"]
    rows = _rows(acquired.t, acquired.node, acquired.req, peers, conns)
    found: list[Sent] = []
    of: dict[tuple[int, Pair], list[Sent]] = defaultdict(list)
    for t, node, req, peer, conn in rows:
        one = Sent(req, (names[node], names[peer]), conn, t, last_ns)
        found.append(one)
        of[req, one.pair].append(one)

    def at(node: int, req: int, peer: int, t: int) -> Sent | None:
        own = of.get((req, (names[node], names[peer])), [])
        return next((one for one in reversed(own) if one.begin <= t), None)

    for kind in (Kind.TRANSFER_START, Kind.TRANSFER_ACKED, Kind.TRANSFER_FAILED, Kind.TCP_INFO):
        table = events[kind]
        where = (table.t, table.node, table.req, table.texts["peer"], table.size)
        seen = ("retrans", "cwnd", "rtt_us") if kind is Kind.TCP_INFO else ()
        numbers = [table.integers[name] for name in seen]
        for t, node, req, peer, size, *more in _rows(*where, *numbers):
            sent = at(node, req, peer, t)
            if sent is None:
                continue
            if kind is Kind.TRANSFER_START:
                sent.size = size
            elif kind is Kind.TCP_INFO:
                sent.retrans += max(more[0], 0)
                sent.cwnd, sent.rtt_us = more[1], more[2]
            else:
                sent.end = t
    for kind in (Kind.POOL_SUSPENDED, Kind.POOL_RESUMED):
        table = events[kind]
        for t, node, req, peer in _rows(table.t, table.node, table.req, table.texts["peer"]):
            sent = at(node, req, peer, t)
            if sent is not None and kind is Kind.POOL_SUSPENDED:
                sent.lent.append((t, sent.end))
            elif sent is not None:  # all suspensions are there: the last one before it ends now
                number = max(i for i, (since, _) in enumerate(sent.lent) if since <= t)
                sent.lent[number] = (sent.lent[number][0], t)
    found.sort(key=lambda one: (one.begin, one.pair, one.req))
    return found
