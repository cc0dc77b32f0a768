"""Every handoff of a run, one by one: what metrics.json has only as percentiles.

::

    RLD token ─ gap ─ MD token                  at the client
    decode.start ─ extend ─ handoff.end         at MD, where it recomputes
    pool.queued ─ increment ─ transfer.acked    at RLD, where it sends KV
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.metrics.events import Events, read_events
from testbed.metrics.run import Run, measured, read_run, role_codes
from testbed.metrics.stages import Times, first, first_token
from testbed.metrics.transfer import to_role
from testbed.reproduce.outcome import RunOutcome

EXTEND_WIDTH = 16
"""Tokens of one step of extend-decode in the profiles of the paper's hardware."""
PUBLISHED_TOKENS = 100


@dataclass(frozen=True, slots=True)
class Handover:
    """One answer that passed from RLD to MD.

    Attributes:
        tokens: RLD's, all of which MD needs the KV of.
        gap_s: from RLD's last token to MD's first, at the client.
        extend_s: from MD's first step to its first token.
        increment_s: RLD's KV, from its queue to the acknowledgement; None where none was sent.
        increment_bytes: bytes of that on the wire.
    """

    tokens: int
    gap_s: float
    extend_s: float
    increment_s: float | None
    increment_bytes: int

    @property
    def extend_100_s(self) -> float:
        """Its steps' mean time, times the steps that 100 tokens take."""
        steps = math.ceil(self.tokens / EXTEND_WIDTH)
        return self.extend_s / steps * math.ceil(PUBLISHED_TOKENS / EXTEND_WIDTH)


@cache
def handovers(folder: Path) -> tuple[Handover, ...]:
    """All handoffs of requests that arrived in the measuring window."""
    run, events = read_run(folder), read_events(folder)
    inside = measured(run, events)
    gaps = _gaps(run, events)
    starts, ends = first(run, events, Kind.DECODE_START), first(run, events, Kind.HANDOFF_END)
    sent, sizes = _increments(run, events)
    table = events[Kind.HANDOFF_END]
    rows = zip(table.req.tolist(), table.integers["position"].tolist(), strict=True)
    return tuple(
        Handover(
            position, gaps[req], (ends[req] - starts[req]) / 1e9, sent.get(req),
            sizes.get(req, 0),
        )
        for req, position in rows
        if inside[req] and position > 0 and req in gaps and req in starts
    )  # fmt: skip


def figure(
    read: Callable[[Handover], float | None],
    reduce: Callable[[Sequence[float]], float],
    least: int = 1,
) -> Callable[[RunOutcome], float | None]:
    """A measure: one figure of each handoff, reduced; None of fewer than ``least``."""

    def of(run: RunOutcome) -> float | None:
        values = [value for one in handovers(run.folder) if (value := read(one)) is not None]
        return reduce(values) if len(values) >= least else None

    return of


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean."""
    return float(np.mean(values))


def spread(values: Sequence[float]) -> float:
    """Standard deviation of a sample."""
    return float(np.std(values, ddof=1))


def _gaps(run: Run, events: Events) -> dict[int, float]:
    """Seconds between the last token of RLD and the first of MD, at the client."""
    table = events[Kind.TOKEN]
    relayed = np.isin(table.texts["source"], role_codes(run, events, Role.RELAY))
    last: Times = dict(zip(table.req[relayed].tolist(), table.t[relayed].tolist(), strict=True))
    begun = first_token(run, events, Role.DECODE)
    return {req: (t - last[req]) / 1e9 for req, t in begun.items() if req in last}


def _increments(run: Run, events: Events) -> tuple[dict[int, float], dict[int, int]]:
    """(seconds, bytes) of every transfer from RLD to MD, by request."""
    relays = role_codes(run, events, Role.RELAY)
    queued, acked = events[Kind.POOL_QUEUED], events[Kind.TRANSFER_ACKED]
    asked = np.isin(queued.node, relays)
    done = np.isin(acked.node, relays) & to_role(run, events, acked, Role.DECODE)
    since = dict(zip(queued.req[asked].tolist(), queued.t[asked].tolist(), strict=True))
    rows = list(
        zip(acked.req[done].tolist(), acked.t[done].tolist(), acked.size[done].tolist(),
            strict=True)
    )  # fmt: skip
    spans = {req: (t - since[req]) / 1e9 for req, t, _ in rows if req in since}
    return spans, {req: size for req, _, size in rows}
