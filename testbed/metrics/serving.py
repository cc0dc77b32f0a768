"""The figures of the serving plane; None for a run whose workload names the instances."""

from __future__ import annotations

from collections import Counter

import numpy as np

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.metrics.device import preempted
from testbed.metrics.events import Events
from testbed.metrics.handoff import handed_over, token_ids
from testbed.metrics.otps import output_rate
from testbed.metrics.parity import instance_hits, parity
from testbed.metrics.routing import forecast, matches, pipeline_of, reasons
from testbed.metrics.run import Flags, Run, role_codes
from testbed.metrics.serving_record import Serving
from testbed.metrics.stages import queue_wait, queue_waits, stages
from testbed.metrics.transfer import Acked


def serving(run: Run, events: Events, acked: Acked, inside: Flags) -> Serving | None:
    """All of them."""
    if not run.serves:
        return None
    pipelines = pipeline_of(run, events, inside)
    found = matches(run, events, inside)
    hits = instance_hits(run, found)
    waits = queue_waits(run, events)
    lost = preempted(run, events, inside)
    return Serving(
        pipelines=dict(sorted(Counter(pipelines.values()).items())),
        reasons=reasons(run, events, inside),
        unrouted=int(inside.sum()) - len(pipelines),
        instances=hits,
        parity=parity(hits, found),
        forecast_p=forecast(events, found, "prefill"),
        forecast_md=forecast(events, found, "decode"),
        token_ids=token_ids(run, events, inside),
        preemptions=sum(one.preemptions for one in lost.values()),
        preempted=lost,
        handoffs_by_mode=_by_mode(run, events, inside),
        rld_peak=_peak(run, events),
        queue_wait=queue_wait(waits, inside),
        stages=stages(run, events, acked, waits, pipelines),
        otps=output_rate(run, events, inside),
    )


def _by_mode(run: Run, events: Events, inside: Flags) -> dict[str, int]:
    start = events[Kind.HANDOFF_START]
    ended = handed_over(run, events, inside)
    rows = zip(run.known(start.req).tolist(), start.texts["mode"].tolist(), strict=True)
    modes = {req: events.names[code] for req, code in rows if inside[req] and req in ended}
    return dict(sorted(Counter(modes.values()).items()))


def _peak(run: Run, events: Events) -> int | None:
    """Most requests at one RLD, from their KV verified there to their end there."""
    if not run.agents(Role.RELAY):
        return None
    verified, end = events[Kind.KV_VERIFIED], events[Kind.RELAY_END]
    peak = 0
    for code in role_codes(run, events, Role.RELAY):
        came, went = verified.node == code, end.node == code
        begins = dict(zip(verified.req[came].tolist(), verified.t[came].tolist(), strict=True))
        ends = [t for req, t in zip(end.req[went].tolist(), end.t[went].tolist(), strict=True)
                if req in begins]  # fmt: skip
        t = np.array([*ends, *begins.values()], dtype=np.int64)
        step = np.repeat([-1, 1], [len(ends), len(begins)])
        if t.size:  # at one moment who ends leaves before who comes: a stable sort keeps that
            peak = max(peak, int(np.cumsum(step[np.argsort(t, kind="stable")]).max()))
    return peak
