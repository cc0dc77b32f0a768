"""How the requests of the window ended."""

from __future__ import annotations

from collections import Counter

import numpy as np

from testbed.contract.event import Kind
from testbed.metrics.events import Events
from testbed.metrics.record import Requests
from testbed.metrics.run import Flags, Run

UNREPORTED = "unreported"
"""Reason of a request that was neither answered nor reported failed."""


def completed(run: Run, events: Events) -> Flags:
    """Per request: answered, and not reported failed as well."""
    done = np.zeros(len(run.requests), dtype=np.bool_)
    done[run.known(events[Kind.REQUEST_DONE].req)] = True
    done[run.known(events[Kind.REQUEST_FAILED].req)] = False
    return done


def outcomes(run: Run, events: Events, inside: Flags) -> Requests:
    """Count the requests of the window; of several reported reasons the first counts."""
    done = completed(run, events)
    failed = events[Kind.REQUEST_FAILED]
    reason_of: dict[int, str] = {}
    for req, code in zip(failed.req.tolist(), failed.texts["reason"].tolist(), strict=True):
        reason_of.setdefault(req, events.names[code])
    reasons = Counter(
        reason_of.get(req, UNREPORTED) for req in np.flatnonzero(inside & ~done).tolist()
    )
    return Requests(
        offered=int(inside.sum()),
        completed=int((inside & done).sum()),
        failed=reasons.total(),
        failed_by_reason=dict(sorted(reasons.items())),
    )
