"""Delays that a run has to account for: stalls, late first tokens, slow transfers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from testbed.contract.event import Kind
from testbed.metrics.attribution.network import Carriage
from testbed.metrics.attribution.past import Past, Sent
from testbed.metrics.events import Events
from testbed.metrics.percentile import NS
from testbed.metrics.run import Flags, Run
from testbed.metrics.table import Integers

FIRST_FACTOR, FIRST_FLOOR_NS = 2.0, 200_000_000
"""A first token is late that took 2 x the median, and 200 ms more than it."""
SLOW_FACTOR, SLOW_FLOOR_NS = 3.0, 50_000_000
"""A transfer is slow that took 3 x its ideal time, and 50 ms more than it."""
BURST_GAP = 0.1
"""Tokens that come closer than this share of the median gap came together."""


@dataclass(frozen=True, slots=True)
class Late:
    """One of them, nanoseconds since the barrier."""

    what: Literal["stall", "first-token", "transfer"]
    req: int
    begin: int
    end: int
    source: str
    client: str = ""
    position: int | None = None
    before: str = ""
    """Who sent the token before; empty for a first one."""
    together: bool = False
    """The tokens that could have been decoded meanwhile came with this one."""
    alone: bool = True
    """Others had tokens from the same source meanwhile, or there were none."""
    sent: Sent | None = None

    @property
    def length(self) -> int:
        """Nanoseconds."""
        return self.end - self.begin


class Tokens:
    """Tokens at the client in order of (request, time), and by source."""

    def __init__(self, run: Run, events: Events, inside: Flags) -> None:
        table = events[Kind.TOKEN]
        own = inside[run.known(table.req)]
        order = np.lexsort((table.t[own], table.req[own]))
        self.names = events.names
        self.req: Integers = table.req[own][order]
        self.t: Integers = table.t[own][order]
        self.pos: Integers = table.integers["pos"][own][order]
        self.source = table.texts["source"][own][order]
        self.node = table.node[own][order]
        self._all = (table.t, table.req, table.texts["source"])
        self._by_source: dict[int, tuple[Integers, Integers]] = {}
        gaps = np.diff(self.t)[np.diff(self.req) == 0]
        self.usual_ns = int(np.median(gaps)) if gaps.size else 0

    def together(self, at: int, length: int) -> bool:
        """Whether tokens that half of a gap could hold came at once, from position ``at`` on."""
        if self.usual_ns <= 0:
            return False
        most = self.t[at] + max(round(self.usual_ns * BURST_GAP), 1_000_000)
        end = at + 1
        while end < self.t.size and self.req[end] == self.req[at] and self.t[end] <= most:
            end += 1
        return (end - at) * self.usual_ns >= length / 2 and end - at > 1

    def silent(self, source: int, req: int, begin: int, end: int) -> bool:
        """Whether others had tokens of a source before and after, and none in between."""
        if source not in self._by_source:
            t, every, sources = self._all
            chosen = sources == source
            self._by_source[source] = (t[chosen], every[chosen])
        t, every = self._by_source[source]
        edge = (end - begin) // 10
        marks = np.searchsorted(t, (begin - NS, begin + edge, end - edge, end + NS))
        a, b, c, d = (int(mark) for mark in marks)
        if (every[b:c] != req).any():
            return False
        return bool((every[a:b] != req).any() or (every[c:d] != req).any())


def stalls(tokens: Tokens, threshold_s: float) -> list[Late]:
    """Gaps beyond the bound of ``stall.threshold_s``, the same that ``stall.count`` counts."""
    gaps = np.diff(tokens.t)
    places = np.flatnonzero((np.diff(tokens.req) == 0) & (gaps / NS > threshold_s)) + 1
    found: list[Late] = []
    for at in places.tolist():
        begin, end = int(tokens.t[at - 1]), int(tokens.t[at])
        source, req = int(tokens.source[at]), int(tokens.req[at])
        found.append(
            Late(
                "stall", req, begin, end, tokens.names[source], tokens.names[tokens.node[at]],
                int(tokens.pos[at]), tokens.names[tokens.source[at - 1]],
                tokens.together(at, end - begin), not tokens.silent(source, req, begin, end),
            )
        )  # fmt: skip
    return found


def first_tokens(events: Events, tokens: Tokens) -> list[Late]:
    """First tokens that are late beside the median of the run."""
    table = events[Kind.REQUEST_SENT]
    sent = dict(zip(table.req.tolist(), table.t.tolist(), strict=True))
    starts = np.flatnonzero(np.diff(tokens.req, prepend=-1)).tolist()
    rows = [(at, sent[req]) for at in starts if (req := int(tokens.req[at])) in sent]
    if not rows:
        return []
    usual = float(np.median([int(tokens.t[at]) - since for at, since in rows]))
    bound = max(FIRST_FACTOR * usual, usual + FIRST_FLOOR_NS)
    return [
        Late(
            "first-token", int(tokens.req[at]), since, int(tokens.t[at]),
            tokens.names[tokens.source[at]], tokens.names[tokens.node[at]], int(tokens.pos[at]),
        )
        for at, since in rows
        if int(tokens.t[at]) - since > bound
    ]  # fmt: skip


def slow_transfers(past: Past, carriage: Carriage, inside: Flags) -> list[Late]:
    """Transfers of the window's requests that took much longer than their bytes need."""
    found: list[Late] = []
    for one in past.sent:
        ideal = carriage.ideal_ns(one)
        bound = max(SLOW_FACTOR * ideal, ideal + SLOW_FLOOR_NS)
        if ideal and inside[one.req] and one.end - one.begin > bound:
            source = "->".join(one.pair)
            found.append(Late("transfer", one.req, one.begin, one.end, source, sent=one))
    return found
