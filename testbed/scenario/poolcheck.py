"""Contradictions within ``pool:`` that its key-by-key checks cannot see."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.contract.agent import CONTROL_PORT, DATA_PORT
from testbed.contract.pool import Order
from testbed.scenario.document import KeyPath
from testbed.scenario.pool import (
    FIRST_EPHEMERAL_PORT,
    FIRST_PORT,
    LAST_SOURCE_PORT,
    GrowingKeys,
    LifoPoolChoice,
    PoolChoice,
)


def pool_faults(pool: PoolChoice) -> Iterator[tuple[KeyPath, str]]:
    """Each contradiction as (key, reason)."""
    if isinstance(pool, GrowingKeys):
        yield from _growth(pool)
        yield from _source_ports(pool.source_port, pool.ports, "source ports")
    else:
        yield from _source_ports(pool.source_port, pool.size, "connections")
        yield from _bound_ports(pool.source_port, pool.source_port + pool.size - 1)
    times = [
        ("acquire_timeout", pool.acquire_timeout), ("transfer_timeout", pool.transfer_timeout),
    ]  # fmt: skip
    if isinstance(pool, LifoPoolChoice):
        times.append(("idle_timeout", pool.idle_timeout))
    for key, duration in times:
        if duration.ns == 0:
            yield ("pool", key), "must be longer than 0 ns"
    if pool.size is not None and pool.stripes > pool.size:
        yield ("pool", "stripes"), f"a transfer cannot go over more than the {pool.size} of size"
    if pool.preempt:
        if pool.order is None or pool.order is Order.FIRST_COME:
            yield ("pool", "preempt"), "needs an order in which somebody comes before another"
        if pool.stripes > 1:
            yield (
                ("pool", "preempt"),
                "a transfer over several lends none of them; drop stripes",
            )
    if not 4096 <= pool.chunk.bytes <= 64 * 2**20:
        yield ("pool", "chunk"), "must be 4 KiB to 64 MiB"


def _growth(pool: GrowingKeys) -> Iterator[tuple[KeyPath, str]]:
    if pool.size is None:
        for key, given in (("queue", pool.queue), ("order", pool.order)):
            if given is not None:
                yield (
                    ("pool", key),
                    f"does nothing without size: where there is no bound nobody waits; add size, "
                    f"or leave {key} out",
                )
    elif pool.ports < pool.size:
        yield (
            ("pool", "size"),
            f"{pool.size} connections at a time need as many source ports, there are "
            f"{pool.ports}; lower size, or raise ports",
        )


def _source_ports(first: int, count: int, what: str) -> Iterator[tuple[KeyPath, str]]:
    """``count`` ports from ``first`` on can be had, and agents do not listen on them."""
    last = first + count - 1
    if last >= LAST_SOURCE_PORT:
        most = LAST_SOURCE_PORT - count
        remedy = f"use at most {most}" if most >= FIRST_PORT else "use fewer"
        yield (
            ("pool", "source_port"),
            f"{count} {what} from port {first} pass {LAST_SOURCE_PORT}; {remedy}",
        )
    elif first <= DATA_PORT and last >= CONTROL_PORT:
        yield (
            ("pool", "source_port"),
            f"ports {first} to {last} hold {CONTROL_PORT} and {DATA_PORT}, on which agents listen; "
            f"use {DATA_PORT + 1} or more",
        )


def _bound_ports(first: int, last: int) -> Iterator[tuple[KeyPath, str]]:
    """Ports that are bound must not be those that the kernel may give to others."""
    if FIRST_EPHEMERAL_PORT <= last < LAST_SOURCE_PORT:
        most = FIRST_EPHEMERAL_PORT - 1 - (last - first)
        yield (
            ("pool", "source_port"),
            f"ports {first} to {last} reach into the range that the kernel hands out "
            f"itself ({FIRST_EPHEMERAL_PORT} up); use at most {most}",
        )
