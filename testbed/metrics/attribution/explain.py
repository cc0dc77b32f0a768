"""Why a wait took its time: each moment of it goes to one cause, or to none."""

from __future__ import annotations

from testbed.metrics.attribution.cause import PLAIN, Cause, Wait, Waited
from testbed.metrics.attribution.force import (
    MESSAGE_ROUNDS,
    bearing,
    by_weight,
    longest_ns,
    on_message,
    on_node,
)
from testbed.metrics.attribution.intervals import common, first, measure, united
from testbed.metrics.attribution.network import RTO_NS, Carriage
from testbed.metrics.attribution.past import Past, Sent
from testbed.metrics.attribution.piece import Cover, Piece, Why
from testbed.metrics.attribution.ways import Way, Ways

HOLDERS = 4
"""So many of the transfers that held a pool's connections are asked why."""
_MARGIN_NS = 5_000_000
"""A message may take so much longer than its links: steps of agents between others."""
_OF_HOLDERS = frozenset({Cause.FAULT, Cause.LOSS})
"""What of the holders of connections explains a wait for one; else the pool is too small."""
_MESSAGES = frozenset({Wait.ROUTE, Wait.ASSIGN, Wait.MATCH, Wait.HANDOFF, Wait.DECODE,
                       Wait.DELIVERY})  # fmt: skip
_ONE_MESSAGE = frozenset({Wait.ROUTE, Wait.ASSIGN, Wait.MATCH, Wait.DELIVERY})
"""One message, which takes as long as its links at least."""


class Explainer:
    """Explains the waits of one run's requests."""

    def __init__(self, past: Past, ways: Ways, slow: float) -> None:
        self._past = past
        self._ways = ways
        self._slow = slow
        self.carriage = Carriage(past, ways, slow)

    def pieces(self, req: int, wait: Waited, beside: str, step_ns: int) -> list[Piece]:
        """Each explained moment of a wait.

        Args:
            beside: who else takes part by messages (RLD in a handoff), or empty.
            step_ns: what a step of decode may take; 0 takes all of a wait for one.
        """
        cover = Cover(((wait.begin, wait.end),))
        if wait.kind is Wait.TRANSFER:
            sent = self._past.transfer(req, (wait.node, wait.peer), wait.begin, wait.end)
            if sent is not None:
                cover.take_pieces(self.carriage.pieces(sent, wait.begin, wait.end))
            return cover.pieces
        self._nodes(cover, wait, beside)
        if wait.kind is Wait.POOL:
            self._held(cover, req, wait)
        if wait.kind in _MESSAGES:
            self._messages(cover, wait, beside)
        plain = PLAIN.get(wait.kind)
        if plain is not None:
            subject = f"{wait.node}->{wait.peer}" if wait.kind is Wait.POOL else wait.node
            cover.rest(Why(plain, subject))
        elif wait.kind is Wait.DECODE:
            spans = first(cover.left, step_ns) if step_ns else cover.left
            cover.take(spans, Why(Cause.DECODE, wait.node))
        elif measure(cover.left):
            usual = self._ways.delay_ns(*_ends(wait)) + _MARGIN_NS
            cover.take(first(cover.left, usual), Why(Cause.MESSAGE, "->".join(_ends(wait))))
        return cover.pieces

    def _nodes(self, cover: Cover, wait: Waited, beside: str) -> None:
        """Faults of the nodes that were waited for."""
        nodes = {wait.node, beside}
        if wait.kind in _MESSAGES:
            nodes.add(wait.peer)
        for force in by_weight(self._past.forces):
            if force.subject in nodes and on_node(force, wait.kind):
                span = united(((force.begin, force.end),))
                cover.take(span, Why(Cause.FAULT, force.subject, force=force))

    def _held(self, cover: Cover, req: int, wait: Waited) -> None:
        """Whoever had the connections meanwhile, and what delayed them."""
        holders = self._past.under_way((wait.node, wait.peer), wait.begin, wait.end)
        holders = [one for one in holders if one.req != req]

        def overlap(one: Sent) -> int:
            return min(one.end, wait.end) - max(one.begin, wait.begin)

        holders.sort(key=lambda one: (-overlap(one), one.begin, one.req))
        found = [
            [
                piece
                for piece in self.carriage.pieces(one, wait.begin, wait.end)
                if piece.why.cause in _OF_HOLDERS
            ]
            for one in holders[:HOLDERS]
        ]
        found.sort(key=lambda own: -sum(piece.end - piece.begin for piece in own))
        for own in found:
            cover.take_pieces(own)
        if holders:
            most = holders[0]
            subject = f"{wait.node}->{wait.peer}"
            cover.rest(Why(Cause.POOL, subject, most, note=f"held by {len(holders)} transfers"))

    def _messages(self, cover: Cover, wait: Waited, beside: str) -> None:
        """Links that messages took: which leg is not known, so all legs are looked at."""
        if wait.kind in _ONE_MESSAGE:
            usual = self._ways.delay_ns(*_ends(wait))
            cover.take(first(cover.left, usual), Why(Cause.MESSAGE, "->".join(_ends(wait))))
        ways = self._message_ways(wait, beside)
        lossy = {
            way: spans
            for way in ways
            if (spans := united(
                (one.begin, one.end + RTO_NS)
                for one in self._past.samples(way, wait.begin - RTO_NS, wait.end)
                if one.drops + one.lost > 0
            ))
        }  # fmt: skip
        for force in bearing(self._past.forces, ways):
            way = next(one for one in ways if force.acts(one))
            spans = common(cover.left, united((on_message(force, wait.begin, way in lossy),)))
            most = longest_ns(force, self._slow, MESSAGE_ROUNDS)
            if most is not None:
                spans = first(spans, most)
            cover.take(spans, Why(Cause.FAULT, str(way), way=way, force=force))
        if wait.kind is Wait.DECODE:
            return  # a step is no message: only a fault explains that its token was late
        for way, spans in lossy.items():
            cover.take(spans, Why(Cause.LOSS, str(way), way=way))
        for way in ways:
            rate = self._ways.specs[way].rate_bps
            samples = self._past.samples(way, wait.begin, wait.end) if rate else ()
            queued = max((one.backlog for one in samples), default=0)
            if queued:
                spans = united((one.begin, one.end) for one in samples if one.backlog)
                spans = first(common(cover.left, spans), queued * 8_000_000_000 // rate)
                cover.take(spans, Why(Cause.CONGESTION, str(way), way=way))

    def _message_ways(self, wait: Waited, beside: str) -> tuple[Way, ...]:
        towards = [(wait.peer, wait.node)]
        if wait.kind in (Wait.DECODE, Wait.DELIVERY):
            towards = [(wait.node, wait.peer), (wait.peer, wait.node)]  # and acknowledgements
        elif wait.kind is Wait.HANDOFF:
            towards = [(wait.node, wait.peer)]
            if beside:
                towards += [(beside, wait.node), (wait.node, beside)]
        elif wait.kind is Wait.MATCH:
            towards += [(wait.node, wait.peer)]
        found = [way for pair in towards for hop in self._ways.between(*pair) for way in hop]
        return tuple(dict.fromkeys(found))


def _ends(wait: Waited) -> tuple[str, str]:
    """From whom a message comes, and to whom."""
    if wait.kind is Wait.DELIVERY:
        return wait.node, wait.peer
    return wait.peer, wait.node
