"""What crossed each link in the window, from the counters that the lab samples.

A sample covers the interval that ends at its time. One that lies partly in the window
counts with that part of its bytes; its drops and its backlog count if it ends inside.
Beside it stands the use over the whole run, as a drain may be longer than the window.
"""

from __future__ import annotations

import numpy as np

from testbed.contract.event import Kind
from testbed.contract.network import Link
from testbed.metrics.events import Events
from testbed.metrics.percentile import NS
from testbed.metrics.record import LinkUse
from testbed.metrics.run import Flags, Run

WAN = "wan"


def link_use(run: Run, events: Events) -> dict[str, LinkUse]:
    """Per link that was sampled, and every WAN leg whether sampled or not."""
    samples = events[Kind.LINK_SAMPLE]
    code_of = {name: code for code, name in enumerate(events.names)}
    uses: dict[str, LinkUse] = {}
    for link in run.plan.emulated.links:
        chosen = samples.texts["link"] == code_of.get(link.name, -1)
        if chosen.any():
            uses[link.name] = _use(run, events, link, chosen)
        elif link.kind == WAN:
            uses[link.name] = LinkUse()
    return uses


def _use(run: Run, events: Events, link: Link, chosen: Flags) -> LinkUse:
    samples = events[Kind.LINK_SAMPLE]
    begin_ns, end_ns = run.window.begin_ns, run.window.end_ns
    t, interval = samples.t[chosen], samples.integers["interval_ns"][chosen]
    overlap = np.clip(np.minimum(t, end_ns) - np.maximum(t - interval, begin_ns), 0, None)
    part = overlap / np.maximum(interval, 1)
    bits = samples.size[chosen] * part * 8
    ends_inside = (t > begin_ns) & (t <= end_ns)
    direction = samples.texts["dir"][chosen]
    sizes = samples.size[chosen]
    carried = t[sizes > 0]
    until_s = float(carried.max()) / NS if carried.size else 0.0
    shares: list[float] = []
    whole: list[float] = []
    for name, spec in (("forward", link.forward), ("backward", link.backward)):
        if spec.rate_bps and name in events.names:
            own = direction == events.names.index(name)
            shares.append(float(bits[own].sum()) / (spec.rate_bps * run.measure_s))
            if until_s > 0:
                whole.append(float(sizes[own].sum()) * 8 / (spec.rate_bps * until_s))
    backlog = samples.integers["backlog"][chosen][ends_inside]
    return LinkUse(
        utilization=max(shares, default=None),
        run_utilization=max(whole, default=None),
        drops=int(samples.integers["drops"][chosen][ends_inside].sum()),
        backlog_max_bytes=int(backlog.max()) if backlog.size else None,
    )
