"""Why a transfer took its time: faults, loss, others on the link, its own size."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from math import log2

from testbed.metrics.attribution.cause import Cause, Wait
from testbed.metrics.attribution.force import (
    ROUNDS,
    bearing,
    by_weight,
    longest_ns,
    on_node,
    on_transfer,
)
from testbed.metrics.attribution.intervals import Intervals, common, first, united
from testbed.metrics.attribution.past import Past, Sample, Sent
from testbed.metrics.attribution.piece import Cover, Piece, Why
from testbed.metrics.attribution.ways import Hop, Way, Ways

RTO_NS = 200_000_000
"""Linux's shortest retransmission time-out: how long a loss may hold a connection up."""
BUSY, QUEUED_NS = 0.7, 5_000_000
"""A link is busy where it carries so much of its rate, or queues so long."""
FIRST_WINDOW = 10
"""Segments that a connection begins with (RFC 6928)."""


class Carriage:
    """Explains transfers of one run."""

    def __init__(self, past: Past, ways: Ways, slow: float) -> None:
        self._past = past
        self._ways = ways
        self._slow = slow
        self._on_way = self._crowd()

    def ideal_ns(self, sent: Sent) -> int:
        """The bytes at the slowest link's rate, a round trip, and those of a slow start."""
        hops = self._hops(sent)
        rate = self._ways.rate_bps(hops)
        if not rate or not sent.size:
            return 0
        rtt = self._ways.delay_ns(*sent.pair) + self._ways.delay_ns(*reversed(sent.pair))
        segment = min(self._ways.specs[way].mtu for hop in hops for way in hop)
        fill = min(sent.size, rate * rtt // 8_000_000_000)
        rounds = 1 + log2(1 + fill / (FIRST_WINDOW * segment))
        return sent.size * 8_000_000_000 // rate + round(rounds * rtt)

    def pieces(self, sent: Sent, begin: int, end: int) -> list[Piece]:
        """Each moment of the interval with what explains it; moments that nothing does are
        left out."""
        cover = Cover(((max(begin, sent.begin), min(end, sent.end)),))
        hops = self._hops(sent)
        ways = [way for hop in hops for way in hop]
        answers = [way for hop in self._back(sent) for way in hop]
        for force in by_weight(
            force for force in self._past.forces
            if force.subject in sent.pair and on_node(force, Wait.TRANSFER)
        ):  # fmt: skip
            spans = united((on_transfer(force, sent),))
            cover.take(spans, Why(Cause.FAULT, force.subject, sent, None, force))
        for force in bearing(self._past.forces, (*ways, *answers)):
            way = next(one for one in (*ways, *answers) if force.acts(one))
            most = longest_ns(force, self._slow, ROUNDS)
            spans = common(cover.left, united((on_transfer(force, sent),)))
            if most is not None:
                spans = first(spans, most)
            cover.take(spans, Why(Cause.FAULT, str(way), sent, way, force, self._doubt(hops, way)))
        cover.take(united(sent.lent), Why(Cause.POOL, "->".join(sent.pair), sent, note="lent"))
        cover.take(first(cover.left, self.ideal_ns(sent)), self._line(sent, hops))
        self._shared(cover, sent, hops, begin, end)
        if sent.retrans:
            self._lost(cover, sent, hops, begin, end)
        self._windowed(cover, sent, hops)
        return cover.pieces

    def others(self, sent: Sent, way: Way, begin: int, end: int) -> int:
        """How many other transfers were on a link then."""
        begins, ends = self._on_way.get(way, ((), ()))
        count = bisect_left(begins, end) - bisect_right(ends, begin)
        return count - (sent.begin < end and sent.end > begin)

    def samples(self, way: Way, begin: int, end: int) -> Sequence[Sample]:
        """Of one direction of a link."""
        return self._past.samples(way, begin, end)

    def _crowd(self) -> dict[Way, tuple[list[int], list[int]]]:
        """Of each link and direction: when transfers began on it, and when they ended."""
        begins: dict[Way, list[int]] = defaultdict(list)
        ends: dict[Way, list[int]] = defaultdict(list)
        for one in self._past.sent:
            for way in (way for hop in self._hops(one) for way in hop):
                begins[way].append(one.begin)
                ends[way].append(one.end)
        return {way: (sorted(own), sorted(ends[way])) for way, own in begins.items()}

    def _lost(self, cover: Cover, sent: Sent, hops: tuple[Hop, ...], begin: int, end: int) -> None:
        """It sent segments again, and these links dropped packets: from then until a time-out
        later."""
        for hop in hops:
            for way in hop:
                spans = united(
                    (one.begin, one.end + RTO_NS)
                    for one in self._past.samples(way, max(sent.begin, begin - RTO_NS), end)
                    if one.drops + one.lost > 0
                )
                cover.take(spans, Why(Cause.LOSS, str(way), sent, way, note=self._doubt(hops, way)))

    def _shared(
        self, cover: Cover, sent: Sent, hops: tuple[Hop, ...], begin: int, end: int
    ) -> None:
        for way in (way for hop in hops for way in hop):
            spans = self._busy(way, begin, end)
            others = self.others(sent, way, begin, end) if spans else 0
            if others:
                note = f"with {others} other transfer{'s' if others > 1 else ''}"
                cover.take(spans, Why(Cause.CONGESTION, str(way), sent, way, note=note))
            else:
                cover.take(spans, Why(Cause.LINE, str(way), sent, way))

    def _busy(self, way: Way, begin: int, end: int) -> Intervals:
        rate = self._ways.specs[way].rate_bps
        if not rate:
            return ()
        return united(
            (one.begin, one.end)
            for one in self._past.samples(way, begin, end)
            if one.size * 8e9 >= BUSY * rate * (one.end - one.begin)
            or one.backlog * 8e9 / rate >= QUEUED_NS
        )

    def _windowed(self, cover: Cover, sent: Sent, hops: tuple[Hop, ...]) -> None:
        rate = self._ways.rate_bps(hops)
        if sent.cwnd <= 0 or sent.rtt_us <= 0 or not rate:
            return
        segment = min(self._ways.specs[way].mtu for hop in hops for way in hop)
        most = sent.cwnd * segment * 8e6 / sent.rtt_us
        if most < 0.8 * rate:
            note = f"{sent.cwnd} segments a round trip of {sent.rtt_us / 1000:.1f} ms"
            cover.rest(Why(Cause.WINDOW, "->".join(sent.pair), sent, note=note))

    def _line(self, sent: Sent, hops: tuple[Hop, ...]) -> Why:
        rate = self._ways.rate_bps(hops)
        slowest = [
            way for hop in hops for way in hop if self._ways.specs[way].rate_bps == rate and rate
        ]
        way = slowest[0] if slowest else None
        return Why(Cause.LINE, "" if way is None else str(way), sent, way)

    def _hops(self, sent: Sent) -> tuple[Hop, ...]:
        return self._ways.of_connection(*sent.pair, sent.conn)

    def _back(self, sent: Sent) -> tuple[Hop, ...]:
        """The way of its acknowledgements: the same leg, whose hash knows no direction."""
        legs = {way.link for hop in self._hops(sent) for way in hop}
        back = self._ways.between(*reversed(sent.pair))
        return tuple(tuple(way for way in hop if way.link in legs) for hop in back)

    @staticmethod
    def _doubt(hops: tuple[Hop, ...], way: Way) -> str:
        alone = any(hop == (way,) for hop in hops) or not any(way in hop for hop in hops)
        return "" if alone else "one of the legs that it may have taken"
