"""A pool gate to play scenes with: its ends are in the test's hand, its events are returned."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import Awaitable, Callable

from testbed.contract.event import EventLog
from testbed.contract.pool import DisciplineRule, Fifo, Lifo, Order, PerTransfer, Pool
from testbed_agents.clock import AgentClock, new_loop
from testbed_agents.pool import OpenError, PoolGate, Refusal

STANDING = Fifo()
ONE_EACH = PerTransfer(ports=3)
STACK = Lifo(ports=3, idle_timeout_ns=20_000_000)


class Ends:
    """Connections that open at once, unless the test says how they fail or wait."""

    def __init__(self) -> None:
        self.fails: dict[int, Refusal] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.open_now: set[int] = set()
        self.closed: list[tuple[int, bool]] = []
        self.aborted: list[int] = []

    async def open(self, connection: int) -> None:
        await self.gate.wait()
        reason = self.fails.pop(connection, None)
        if reason is not None:
            raise OpenError(reason, "md1", "as the test wants it")
        assert connection not in self.open_now
        self.open_now.add(connection)

    def close(self, connection: int, in_order: bool) -> None:
        self.open_now.remove(connection)
        self.closed.append((connection, in_order))

    def abort(self, connection: int) -> None:
        self.aborted.append(connection)


def play(
    scene: Callable[[PoolGate], Awaitable[None]],
    size: int | None = 1,
    timeout_s: float = 20,
    discipline: DisciplineRule = STANDING,
    ends: Ends | None = None,
    order: Order = Order.FIRST_COME,
) -> list[dict[str, object]]:
    """Runs ``scene`` with a fresh gate; returns its events."""
    stream = io.StringIO()

    async def work() -> None:
        clock = AgentClock(time.time_ns())
        log = EventLog(stream, "p1", clock)
        pool = Pool(
            size=size, queue=100, acquire_timeout_ns=int(timeout_s * 1e9),
            transfer_timeout_ns=1, chunk_bytes=1, source_port=2_000,
            discipline=discipline, order=order,
        )  # fmt: skip
        async with asyncio.timeout(20):
            await scene(PoolGate("md1", pool, clock, log, ends or Ends()))
        log.flush()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(work())
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def kinds(events: list[dict[str, object]]) -> list[object]:
    return [event["kind"] for event in events]


def told_of(events: list[dict[str, object]], req: int) -> list[tuple[object, object]]:
    return [(e["kind"], e["conn"]) for e in events if e.get("req") == req and "conn" in e]
