"""Transfers: from the moment a connection was acquired to the final acknowledgement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.errors import AnalysisError
from testbed.metrics.events import Events
from testbed.metrics.percentile import NS, Samples, mean, percentile
from testbed.metrics.record import Transfers
from testbed.metrics.run import Flags, Run, role_codes
from testbed.metrics.table import Integers, Table

Key = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Acked:
    """Columns, one entry an acknowledged transfer, in order of the acknowledgement."""

    t: Integers
    """Acknowledged at, nanoseconds since the barrier."""
    req: Integers
    size_bytes: Integers
    wait_s: Samples
    duration_s: Samples


def acked_transfers(run: Run, events: Events) -> Acked:
    """All acknowledged transfers from P to main decode, with their queue wait and duration.

    What RLD sends MD in ``incremental-kv`` is none of them. A request may be transferred
    again after a failure: an acknowledgement belongs to the latest acquisition before it, an
    acquisition to the latest queueing.

    Raises:
        AnalysisError: an acknowledgement without acquisition, or that without queueing.
    """
    queued = _latest(events[Kind.POOL_QUEUED])
    acquired = _latest(events[Kind.POOL_ACQUIRED])
    acked = events[Kind.TRANSFER_ACKED]
    main = main_path(run, events, acked)
    waits: list[float] = []
    durations: list[float] = []
    for (key, t), counted in zip(_rows(acked), main.tolist(), strict=True):
        if not counted:
            continue
        start = _before(acquired, key, t, "was acknowledged but never acquired a connection")
        entered = _before(queued, key, start, "acquired a connection but never queued for it")
        waits.append((start - entered) / NS)
        durations.append((t - start) / NS)
    return Acked(
        t=acked.t[main],
        req=run.known(acked.req)[main],
        size_bytes=acked.size[main],
        wait_s=np.array(waits, dtype=np.float64),
        duration_s=np.array(durations, dtype=np.float64),
    )


def to_role(run: Run, events: Events, table: Table, role: Role) -> Flags:
    """Which events of a table with peers go to an agent of ``role``."""
    return np.isin(table.texts["peer"], role_codes(run, events, role))


def from_role(run: Run, events: Events, table: Table, role: Role) -> Flags:
    """Which events of a table happened at an agent of ``role``."""
    return np.isin(table.node, role_codes(run, events, role))


def main_path(run: Run, events: Events, table: Table) -> Flags:
    """Which events of a table with peers belong to KV on its way from P to MD."""
    to_main = to_role(run, events, table, Role.DECODE)
    return to_main & ~from_role(run, events, table, Role.RELAY)


def other_bytes(run: Run, events: Events, inside: Flags) -> dict[str, int]:
    """Bytes of the window's requests by kind, beyond the KV that MD acknowledged.

    ``kv-relay`` is what RLD acknowledged: contexts over the fast link. ``kv-increment`` is the
    KV of its own tokens that it sent MD, ``token-ids`` what it told MD: messages over the
    WAN, without the headers of ZeroMQ, TCP and IP.
    """
    acked, end = events[Kind.TRANSFER_ACKED], events[Kind.RELAY_END]
    counted = inside[run.known(acked.req)]
    to_relay = to_role(run, events, acked, Role.RELAY) & counted
    by_relay = to_role(run, events, acked, Role.DECODE) & counted
    by_relay &= from_role(run, events, acked, Role.RELAY)
    sizes = {
        "kv-relay": int(acked.size[to_relay].sum()),
        "kv-increment": int(acked.size[by_relay].sum()),
        "token-ids": int(end.size[inside[run.known(end.req)]].sum()),
    }
    return {kind: size for kind, size in sizes.items() if size}


def transfers(run: Run, events: Events, acked: Acked, inside: Flags) -> Transfers:
    """Figures over the transfers of the window's requests."""
    failed, tcp = events[Kind.TRANSFER_FAILED], events[Kind.TCP_INFO]
    lost = main_path(run, events, failed) & inside[run.known(failed.req)]
    seen = main_path(run, events, tcp) & inside[run.known(tcp.req)]
    chosen = inside[acked.req]
    durations = acked.duration_s[chosen]
    total = int(acked.size_bytes[chosen].sum())
    return Transfers(
        p50_s=percentile(durations, 50),
        p90_s=percentile(durations, 90),
        p99_s=percentile(durations, 99),
        mean_s=mean(durations),
        bytes=total,
        bytes_by_kind={"kv": total, **other_bytes(run, events, inside)},
        failed=int(lost.sum()),
        retransmits=int(tcp.integers["retrans"][seen].sum()),
    )


def _rows(table: Table) -> list[tuple[Key, int]]:
    columns = (table.req, table.node, table.texts["peer"], table.t)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [((req, node, peer), t) for req, node, peer, t in rows]


def _latest(table: Table) -> dict[Key, list[int]]:
    """Times of each (request, sender, receiver), ascending."""
    times: dict[Key, list[int]] = {}
    for key, t in _rows(table):
        times.setdefault(key, []).append(t)
    return times


def _before(times: dict[Key, list[int]], key: Key, limit: int, cause: str) -> int:
    for t in reversed(times.get(key, [])):
        if t <= limit:
            return t
    raise AnalysisError(
        "compute metrics", f"transfer of request {key[0]}", cause,
        "pool events are missing or were moved; run the scenario again",
    )  # fmt: skip
