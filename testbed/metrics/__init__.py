"""Raw events become numbers: pure functions of a run folder, in constant memory per event.

::

    plan.json ─────┐
    workload.jsonl ┼─► Run, Events ─► figures ─► metrics.json
    events/*.jsonl ┘         └──────► oracle ──► oracle.jsonl

This room judges nothing (see ``testbed.checks``) and draws nothing (``testbed.report``).
"""

from testbed.metrics.compute import compute, figures
from testbed.metrics.events import Events, read_events
from testbed.metrics.record import Metrics
from testbed.metrics.run import Run, measured, read_run
from testbed.metrics.timeline import timeline_sha256

__all__ = [
    "Events",
    "Metrics",
    "Run",
    "compute",
    "figures",
    "measured",
    "read_events",
    "read_run",
    "timeline_sha256",
]
