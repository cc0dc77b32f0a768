"""Device memory that ran out: who had to give way, and what was computed again for it."""

from __future__ import annotations

import numpy as np

from testbed.contract.event import Kind
from testbed.metrics.events import Events
from testbed.metrics.run import Flags, Run
from testbed.metrics.serving_record import Preempted


def preempted(run: Run, events: Events, inside: Flags) -> dict[str, Preempted]:
    """One entry for each RLD and MD that preempted a request of the window."""
    table = events[Kind.SEQUENCE_PREEMPTED]
    counted = inside[run.known(table.req)]
    found: dict[str, Preempted] = {}
    for code in np.unique(table.node[counted]).tolist():
        own = counted & (table.node == code)
        found[events.names[code]] = Preempted(
            preemptions=int(own.sum()),
            requests=len(np.unique(table.req[own])),
            recomputed_tokens=int(table.integers["tokens"][own].sum()),
        )
    return dict(sorted(found.items()))
