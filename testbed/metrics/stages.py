"""What the time of a request went into, stage by stage and pipeline by pipeline."""

from __future__ import annotations

import numpy as np

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.metrics.events import Events
from testbed.metrics.percentile import NS, mean, percentile
from testbed.metrics.run import Flags, Run, role_codes
from testbed.metrics.serving_record import QueueWait, Stages
from testbed.metrics.table import Integers
from testbed.metrics.transfer import Acked

Times = dict[int, int]
"""Request to nanoseconds since the barrier."""
Spans = dict[int, float]
"""Request to seconds."""


def queue_waits(run: Run, events: Events) -> Spans:
    """Each request's wait at P."""
    return _between(first(run, events, Kind.PREFILL_QUEUED), first(run, events, Kind.PREFILL_START))


def queue_wait(waits: Spans, inside: Flags) -> QueueWait:
    """Percentiles over the window's requests."""
    samples = np.array([wait for req, wait in waits.items() if inside[req]], dtype=np.float64)
    return QueueWait(
        p50_s=percentile(samples, 50), p90_s=percentile(samples, 90), p99_s=percentile(samples, 99)
    )


def stages(
    run: Run, events: Events, acked: Acked, waits: Spans, pipelines: dict[int, str]
) -> dict[str, Stages]:
    """Mean stage times of each pipeline."""
    verified = first(run, events, Kind.HANDOFF_START)
    relayed = first_token(run, events, Role.RELAY)
    spans: dict[str, Spans] = {
        "prefill_queue_s": waits,
        "prefill_s": _between(
            first(run, events, Kind.PREFILL_START), first(run, events, Kind.PREFILL_END)
        ),
        "connection_wait_s": dict(zip(acked.req.tolist(), acked.wait_s.tolist(), strict=True)),
        "transfer_s": dict(zip(acked.req.tolist(), acked.duration_s.tolist(), strict=True)),
        "eager_s": {req: max(0.0, span) for req, span in _between(relayed, verified).items()},
        "handoff_s": _between(verified, first(run, events, Kind.HANDOFF_END)),
    }
    return {
        pipeline: _means(spans, [req for req, other in pipelines.items() if other == pipeline])
        for pipeline in sorted(set(pipelines.values()))
    }


def first(run: Run, events: Events, kind: Kind) -> Times:
    """When each request first had an event of ``kind``."""
    return earliest(run.known(events[kind].req), events[kind].t)


def first_token(run: Run, events: Events, role: Role) -> Times:
    """When the first token that each request had from a ``role`` was at the client."""
    table = events[Kind.TOKEN]
    chosen = np.isin(table.texts["source"], role_codes(run, events, role))
    return earliest(table.req[chosen], table.t[chosen])


def earliest(req: Integers, t: Integers) -> Times:
    """The first time of each request, of columns in order of time."""
    times: Times = {}
    for one, at in zip(req.tolist(), t.tolist(), strict=True):
        times.setdefault(one, at)
    return times


def _between(begin: Times, end: Times) -> Spans:
    return {req: (end[req] - t) / NS for req, t in begin.items() if req in end}


def _means(spans: dict[str, Spans], reqs: list[int]) -> Stages:
    means = {
        name: mean(np.array([own[req] for req in reqs if req in own], dtype=np.float64))
        for name, own in spans.items()
    }
    return Stages.model_validate({"requests": len(reqs), **means})
