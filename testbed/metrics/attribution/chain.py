"""From a delay and its explained moments to the record of it: shares, root, chain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.metrics.attribution.cause import Cause, Waited
from testbed.metrics.attribution.late import Late
from testbed.metrics.attribution.network import Carriage
from testbed.metrics.attribution.piece import Piece, Why
from testbed.metrics.attribution.record import Delay, Link, Share
from testbed.metrics.percentile import NS

SHARES_MAX = 12


@dataclass(frozen=True, slots=True)
class Account:
    """One delay with its waits, and per wait the pieces that explain it."""

    late: Late
    waits: Sequence[tuple[Waited, list[Piece]]]

    def by_key(self) -> list[tuple[int, Why]]:
        """Nanoseconds that each cause explains, the most first, with a piece's reason."""
        total: dict[tuple[Cause, str, str], int] = defaultdict(int)
        longest: dict[tuple[Cause, str, str], Piece] = {}
        for _, pieces in self.waits:
            for piece in pieces:
                key = piece.why.key
                total[key] += piece.end - piece.begin
                known = longest.get(key)
                if known is None or piece.end - piece.begin > known.end - known.begin:
                    longest[key] = piece
        rows = sorted(total, key=lambda key: (-total[key], key))
        return [(total[key], longest[key].why) for key in rows]

    @property
    def unexplained(self) -> int:
        """Nanoseconds."""
        return self.late.length - sum(ns for ns, _ in self.by_key())

    def root(self) -> Why:
        """What explains the most; where more is unexplained than that explains, nothing does."""
        rows = self.by_key()
        if not rows or rows[0][0] < self.unexplained:
            return Why(Cause.UNEXPLAINED)
        return rows[0][1]

    def record(self, carriage: Carriage) -> Delay:
        """What ``metrics.json`` says of it."""
        late, root, rows = self.late, self.root(), self.by_key()
        waits: dict[str, float] = defaultdict(float)
        for wait, _ in self.waits:
            waits[wait.kind.value] += (wait.end - wait.begin) / NS
        return Delay(
            what=late.what,
            req=late.req,
            position=late.position,
            source=late.source,
            begin_s=late.begin / NS,
            length_s=late.length / NS,
            root=root.cause.value,
            fault="" if root.force is None else root.force.fault.name,
            subject=root.subject,
            waits=dict(waits),
            shares=tuple(
                Share(
                    cause=why.cause.value, subject=why.subject,
                    fault="" if why.force is None else why.force.fault.name,
                    seconds=ns / NS, share=ns / late.length,
                )
                for ns, why in rows[:SHARES_MAX]
            ),
            unexplained_s=self.unexplained / NS,
            chain=self._chain(root, carriage),
        )  # fmt: skip

    def _chain(self, root: Why, carriage: Carriage) -> tuple[Link, ...]:
        links: list[Link] = []
        wait = self._waited(root)
        if wait is not None:
            to = f"->{wait.peer}" if wait.peer else ""
            links.append(
                self._link("wait", f"{wait.kind.value} at {wait.node}{to}", wait.begin, wait.end)
            )
        sent, way, force = root.sent, root.way, root.force
        if sent is not None:
            span, pair = (sent.begin, sent.end), "->".join(sent.pair)
            again = f"{sent.size:,} bytes, {sent.retrans:,} segments sent again"
            note = "" if way is not None or not root.note else f"; {root.note}"
            links.append(self._link("transfer", f"request {sent.req} {pair}", *span, again + note))
            if sent.conn >= 0:
                seen = f"at its end {sent.cwnd} segments of window, round trip {sent.rtt_us} us"
                known = seen if sent.cwnd >= 0 else "gone before its end"
                links.append(self._link("connection", f"{pair} {sent.conn}", *span, known))
        if way is not None:
            own = self.late if sent is None else sent
            begin, end = own.begin, own.end
            samples = carriage.samples(way, begin, end)
            if samples:
                dropped, lost = sum(s.drops for s in samples), sum(s.lost for s in samples)
                told = (
                    f"{dropped:,} packets dropped by its queue, {lost:,} lost on it, at most "
                    f"{max(s.backlog for s in samples):,} bytes queued"
                )
                if root.note:
                    told += f"; {root.note}"
                links.append(self._link("leg", str(way), samples[0].begin, samples[-1].end, told))
            else:
                links.append(self._link("leg", str(way), begin, end, "nothing passed"))
        if force is not None:
            links.append(
                self._link(
                    "fault", f"{force.fault.name}: {force.kind} on {force.subject}", force.begin,
                    force.end,
                )
            )  # fmt: skip
        return tuple(links)

    def _waited(self, root: Why) -> Waited | None:
        """The wait that the root explains the most of; without a root the longest one."""
        best, most = None, -1
        for wait, pieces in self.waits:
            own = sum(piece.end - piece.begin for piece in pieces if piece.why.key == root.key)
            if root.cause is Cause.UNEXPLAINED:
                known = sum(piece.end - piece.begin for piece in pieces)
                own = wait.end - wait.begin - known
            if own > most:
                best, most = wait, own
        return best

    def _link(self, kind: str, subject: str, begin: int, end: int, evidence: str = "") -> Link:
        overlap = min(end, self.late.end) - max(begin, self.late.begin)
        return Link(
            kind=kind, subject=subject, begin_s=begin / NS, end_s=end / NS,
            share=max(overlap, 0) / self.late.length, evidence=evidence,
        )  # fmt: skip
