"""Output tokens per second at the client around the handoff: does the stream dip?

Time is counted from the first token of MD. A bin counts an answer only where it is
under way for the whole bin (its first token before, its last after), so that answers
which start or end nearby are not taken for a dip.
"""

from __future__ import annotations

import numpy as np

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.metrics.events import Events
from testbed.metrics.run import Flags, Run, role_codes
from testbed.metrics.serving_record import OutputRate
from testbed.metrics.table import Integers

BIN_NS = 100_000_000
BINS = 20
"""Bins on each side: two seconds."""


def output_rate(run: Run, events: Events, inside: Flags) -> OutputRate:
    """Mean rate in bins of 100 ms over the answers that RLD began and MD went on with."""
    if not run.agents(Role.RELAY):
        return OutputRate()
    begins = np.arange(-BINS, BINS, dtype=np.int64) * BIN_NS
    tokens = np.zeros(2 * BINS, dtype=np.int64)
    answers = np.zeros(2 * BINS, dtype=np.int64)
    for times in _around_handoff(run, events, inside):
        whole = (times[0] <= begins) & (times[-1] >= begins + BIN_NS)
        bins = times // BIN_NS + BINS
        near = bins[(bins >= 0) & (bins < 2 * BINS)]
        tokens += np.where(whole, np.bincount(near, minlength=2 * BINS), 0)
        answers += whole
    return OutputRate(
        at_s=tuple((begin + BIN_NS // 2) / 1e9 for begin in begins.tolist()),
        tokens_per_s=tuple(
            count * 1e9 / (many * BIN_NS) if many else None
            for count, many in zip(tokens.tolist(), answers.tolist(), strict=True)
        ),
        answers=tuple(answers.tolist()),
    )


def _around_handoff(run: Run, events: Events, inside: Flags) -> list[Integers]:
    """Per handed-over answer: times of its tokens from MD's first one on, ascending."""
    table = events[Kind.TOKEN]
    chosen = inside[run.known(table.req)]
    req, t, source = table.req[chosen], table.t[chosen], table.texts["source"][chosen]
    order = np.lexsort((t, req))
    req, t, source = req[order], t[order], source[order]
    main = np.isin(source, role_codes(run, events, Role.DECODE))
    relayed = np.isin(source, role_codes(run, events, Role.RELAY))
    edges = np.flatnonzero(np.diff(req, prepend=-1, append=-1))
    found: list[Integers] = []
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        own = main[begin:end]
        if own.any() and relayed[begin:end].any():
            found.append(t[begin:end] - t[begin + int(np.argmax(own))])
    return found
