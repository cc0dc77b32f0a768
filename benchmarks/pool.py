"""What the pool's gate costs a transfer, by discipline, against a plain ``asyncio.Semaphore``.

``python -m benchmarks.pool [--runs N] [--loans N]``

A loan is to acquire a connection and to give it back. *Alone*: nobody waits. *Waiting*: 32 tasks
share 4 connections and hold each for one turn of the loop, so that 28 wait. Ends open at once
and events go to memory: what is counted is futures, the rule and its record, in CPU time of
this process. Each run measures gate and semaphore in turns, and gives their ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import time
from collections.abc import Awaitable, Callable

from benchmarks.figures import spread
from benchmarks.machine import machine
from testbed.contract.event import EventLog
from testbed.contract.pool import DisciplineRule, Fifo, Lanes, Lifo, Order, PerTransfer, Pool
from testbed_agents.clock import AgentClock, new_loop
from testbed_agents.pool import Claim, PoolGate

TASKS, CONNECTIONS, PORTS = 32, 4, 1_000
PATIENCE_NS = 300 * 10**9
RULES: tuple[tuple[str, DisciplineRule, Order], ...] = (
    ("fifo", Fifo(), Order.FIRST_COME),
    ("fifo, smallest first", Fifo(), Order.SMALLEST_FIRST),
    ("fifo, earliest deadline", Fifo(), Order.EARLIEST_DEADLINE),
    ("per-transfer", PerTransfer(ports=PORTS), Order.FIRST_COME),
    ("lifo", Lifo(ports=PORTS, idle_timeout_ns=10 * 10**9), Order.FIRST_COME),
    ("lanes", Lanes(), Order.FIRST_COME),
)
Loan = Callable[[int], Awaitable[None]]


class Ends:
    """Connections that open at once and carry nothing."""

    async def open(self, connection: int) -> None:
        """It is open."""

    def close(self, connection: int, in_order: bool) -> None:
        """It is closed."""

    def abort(self, connection: int) -> None:
        """It is reset."""


def gate_of(rule: DisciplineRule, order: Order) -> PoolGate:
    """A gate of four connections whose events go nowhere but to memory."""
    pool = Pool(
        size=CONNECTIONS, queue=TASKS, acquire_timeout_ns=PATIENCE_NS,
        transfer_timeout_ns=PATIENCE_NS, chunk_bytes=1, source_port=20_000, discipline=rule,
        order=order,
    )  # fmt: skip
    clock = AgentClock(time.time_ns())
    return PoolGate("md1", pool, clock, EventLog(io.StringIO(), "p1", clock), Ends())


def through(gate: PoolGate, hold: bool) -> Loan:
    """A loan of the gate; with ``hold`` it lasts for one turn of the loop."""

    async def loan(request: int) -> None:
        lease = await gate.acquire(request, Claim(request % 97, request))
        if hold:
            await asyncio.sleep(0)
        gate.release(request, lease.connection)

    return loan


def semaphore(hold: bool) -> Loan:
    """The same of a semaphore."""
    places = asyncio.Semaphore(CONNECTIONS)

    async def loan(request: int) -> None:
        async with places:
            if hold:
                await asyncio.sleep(0)

    return loan


async def microseconds(loan: Loan, tasks: int, loans: int) -> float:
    """Mean CPU time of one of ``loans`` loans, made by ``tasks`` at once."""

    async def work(first: int) -> None:
        for request in range(first, loans, tasks):
            await loan(request)

    started = time.process_time_ns()
    async with asyncio.TaskGroup() as group:
        for first in range(tasks):
            group.create_task(work(first))
    return (time.process_time_ns() - started) / loans / 1e3


def main() -> None:
    """Reads the options, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--loans", type=int, default=4_000)
    options = parser.parse_args()
    print(machine())
    with asyncio.Runner(loop_factory=new_loop) as runner:

        def once(loan: Loan, tasks: int) -> float:
            return runner.run(microseconds(loan, tasks, options.loans))

        for how, tasks in (("alone", 1), ("waiting", TASKS)):
            peer: list[float] = []
            for name, rule, order in RULES:
                took: list[float] = []
                times: list[float] = []
                for run in range(options.runs + 1):
                    hold = tasks > 1
                    theirs = once(semaphore(hold), tasks)
                    ours = once(through(gate_of(rule, order), hold), tasks)
                    if run:  # the first is warm-up, not counted
                        peer.append(theirs)
                        took.append(ours)
                        times.append(ours / theirs)
                print(spread(f"loan, {how}, {name}", "us of CPU", took))
                print(spread(f"  {name} / semaphore", "x", times))
            print(spread(f"loan, {how}, semaphore", "us of CPU", peer))


if __name__ == "__main__":
    main()
