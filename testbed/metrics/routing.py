"""Where the router sent requests and why, and how well it knew the caches."""

from __future__ import annotations

from collections import Counter

import numpy as np

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.metrics.events import Events
from testbed.metrics.run import Flags, Run, role_codes
from testbed.metrics.serving_record import Forecast

Matches = dict[tuple[int, str], tuple[int, int]]
"""(request, instance) to (blocks found, blocks asked for); of several the last."""


def pipeline_of(run: Run, events: Events, inside: Flags) -> dict[int, str]:
    """The pipeline of each routed request of the window."""
    table = events[Kind.REQUEST_ROUTED]
    rows = zip(run.known(table.req).tolist(), table.texts["pipeline"].tolist(), strict=True)
    return {req: events.names[code] for req, code in rows if inside[req]}


def reasons(run: Run, events: Events, inside: Flags) -> dict[str, dict[str, int]]:
    """Requests by pipeline and by the router's reason for it."""
    table = events[Kind.REQUEST_ROUTED]
    columns = (run.known(table.req), table.texts["pipeline"], table.texts["reason"])
    last = {
        req: (events.names[pipeline], events.names[reason])
        for req, pipeline, reason in zip(*(column.tolist() for column in columns), strict=True)
        if inside[req]
    }
    counts: dict[str, dict[str, int]] = {}
    for (pipeline, reason), count in sorted(Counter(last.values()).items()):
        counts.setdefault(pipeline, {})[reason] = count
    return counts


def matches(run: Run, events: Events, inside: Flags) -> Matches:
    """What each cache found for each request of the window."""
    table = events[Kind.CACHE_MATCHED]
    columns = (run.known(table.req), table.node, table.integers["blocks"], table.integers["of"])
    return {
        (req, events.names[node]): (blocks, of)
        for req, node, blocks, of in zip(*(column.tolist() for column in columns), strict=True)
        if inside[req]
    }


def main_hits(run: Run, events: Events) -> dict[int, float]:
    """The share of each prompt that MD's cache held; empty for a run without caches."""
    table = events[Kind.CACHE_MATCHED]
    main = np.isin(table.node, role_codes(run, events, Role.DECODE))
    columns = (table.req, table.integers["blocks"], table.integers["of"])
    return {
        req: blocks / of
        for req, blocks, of in zip(*(column[main].tolist() for column in columns), strict=True)
        if of
    }


def forecast(events: Events, found: Matches, side: str) -> Forecast:
    """The router's picture of ``side`` (prefill or decode) against what was found there."""
    table = events[Kind.REQUEST_ROUTED]
    columns = (table.req, table.texts[side], table.integers[f"{side}_hit"])
    requests = predicted = held = asked = exact = 0
    for req, code, believed in zip(*(column.tolist() for column in columns), strict=True):
        match = found.get((req, events.names[code]))
        if match is None:
            continue
        requests += 1
        predicted += believed
        held += match[0]
        asked += match[1]
        exact += believed == match[0]
    return Forecast(
        requests=requests,
        predicted_hit=predicted / asked if asked else None,
        found_hit=held / asked if asked else None,
        exact_fraction=exact / requests if requests else None,
    )
