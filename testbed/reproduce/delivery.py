"""From asking for a connection to the last acknowledgement: what a pool costs a request in all.

``transfer`` leaves the wait out, and a discipline may turn one into the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from testbed.metrics.events import read_events
from testbed.metrics.percentile import Samples
from testbed.metrics.run import measured, read_run
from testbed.metrics.table import Integers
from testbed.metrics.transfer import acked_transfers
from testbed.reproduce.outcome import RunOutcome


@dataclass(frozen=True, slots=True)
class Deliveries:
    """The acknowledged transfers of a run's measuring window, wait and opening included."""

    took_s: Samples
    size_bytes: Integers


@cache
def deliveries(folder: Path) -> Deliveries:
    """Those of a run.

    Raises:
        AnalysisError: a file of the run is missing, malformed or contradicts another.
    """
    run, events = read_run(folder), read_events(folder)
    acked = acked_transfers(run, events)
    chosen = measured(run, events)[acked.req]
    return Deliveries((acked.wait_s + acked.duration_s)[chosen], acked.size_bytes[chosen])


def p50(run: RunOutcome) -> float | None:
    """Median, seconds."""
    return _percentile(deliveries(run.folder).took_s, 50)


def p99(run: RunOutcome) -> float | None:
    """99th percentile, seconds."""
    return _percentile(deliveries(run.folder).took_s, 99)


def mean(run: RunOutcome) -> float | None:
    """Mean, seconds."""
    took = deliveries(run.folder).took_s
    return float(took.mean()) if took.size else None


def small_p90(run: RunOutcome) -> float | None:
    """90th percentile of the smaller half, seconds: who waits behind others' bytes."""
    all_of = deliveries(run.folder)
    if not all_of.took_s.size:
        return None
    small = all_of.size_bytes <= np.median(all_of.size_bytes)
    return _percentile(all_of.took_s[small], 90)


def refused_share(run: RunOutcome) -> float | None:
    """Refusals of the pool over the window's requests."""
    offered, refused = run.number("requests.offered"), run.number("pool.refused")
    return refused / offered if offered and refused is not None else None


def _percentile(values: Samples, at: float) -> float | None:
    return float(np.percentile(values, at)) if values.size else None
