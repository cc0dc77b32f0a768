"""A pool replayed from its events: who waits, who holds which connection.

One pool per (sender, receiver) pair. The replay trusts only the order of events and
their names, not the counts that the agent wrote beside them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from testbed.checks.history import History
from testbed.checks.step import Step, in_order
from testbed.contract.event import Kind

PairName = tuple[str, str]


@dataclass(slots=True)
class PoolReplay:
    """One pair's pool between two events."""

    holders: dict[int, int] = field(default_factory=dict)
    """Connection index to the request that holds it, or for which it is being opened."""
    queue: list[int] = field(default_factory=list)
    """Waiting requests, the next to be served first."""
    faults: list[str] = field(default_factory=list)
    peak_busy: int = 0
    peak_waiting: int = 0
    out_of_turn: list[str] = field(default_factory=list)
    opening: set[int] = field(default_factory=set)
    """Requests for which a connection is being opened."""
    lent: dict[int, int] = field(default_factory=dict)
    """Connection to the request that holds it and has lent it to another."""
    open: set[int] = field(default_factory=set)
    """Open connections of a pool that opens them on demand."""
    on_demand: bool = False

    def take(self, step: Step) -> None:
        """Apply one event; note what no pool may do."""
        if step.kind is Kind.POOL_QUEUED:
            self.queue.append(step.req)
        elif step.kind is Kind.CONNECTION_OPENING:
            self._begin(step)
        elif step.kind is Kind.CONNECTION_OPENED:
            self.open.add(step.conn)
        elif step.kind is Kind.CONNECTION_CLOSED:
            self._close(step)
        elif step.kind is Kind.POOL_ACQUIRED:
            self._acquire(step)
        elif step.kind is Kind.POOL_JOINED:
            self._join(step)
        elif step.kind is Kind.POOL_SUSPENDED:
            if self.holders.pop(step.conn, None) != step.req:
                self.faults.append(f"request {step.req} lent connection {step.conn}, not its own")
            self.lent[step.conn] = step.req
        elif step.kind is Kind.POOL_RESUMED:
            if self.lent.pop(step.conn, None) != step.req:
                self.faults.append(f"request {step.req} resumed on {step.conn}, not its own")
            self._hold(step)
        elif step.kind in (Kind.POOL_RELEASED, Kind.POOL_LEFT):
            if self.lent.get(step.conn) == step.req:
                del self.lent[step.conn]  # its holder goes while another has it
            elif self.holders.pop(step.conn, None) != step.req:
                self.faults.append(
                    f"request {step.req} released connection {step.conn}, not its own"
                )
        elif step.req in self.queue:  # refused
            self.queue.remove(step.req)
        elif step.req in self.opening:
            self.opening.remove(step.req)
            self.holders = {conn: req for conn, req in self.holders.items() if req != step.req}
        self.peak_waiting = max(self.peak_waiting, len(self.queue))

    def _begin(self, step: Step) -> None:
        self.on_demand = True
        if step.conn in self.open:
            self.faults.append(f"connection {step.conn} was opened while it was open")
        if step.req in self.holders.values():
            self._hold(step)  # it joins a connection that the request has
            return
        self._take(step)
        self.opening.add(step.req)

    def _close(self, step: Step) -> None:
        if step.conn not in self.open:
            self.faults.append(f"connection {step.conn} was closed and was not open")
        if step.conn in self.holders:
            self.faults.append(
                f"connection {step.conn} was closed while request {self.holders[step.conn]} held it"
            )
        self.open.discard(step.conn)

    def _acquire(self, step: Step) -> None:
        if self.on_demand and step.conn not in self.open:
            self.faults.append(f"request {step.req} acquired connection {step.conn}, not open")
        if step.req in self.opening and self.holders.get(step.conn) == step.req:
            self.opening.remove(step.req)
        else:
            self._take(step)

    def _join(self, step: Step) -> None:
        if step.req not in self.holders.values():
            self.faults.append(f"request {step.req} joined connection {step.conn} to none")
        if self.on_demand and step.conn not in self.open:
            self.faults.append(f"request {step.req} joined connection {step.conn}, not open")
        if self.holders.get(step.conn) != step.req:
            self._hold(step)

    def _take(self, step: Step) -> None:
        """Out of the queue, onto a connection."""
        if step.req not in self.queue:
            self.faults.append(f"request {step.req} acquired without queueing")
        else:
            if self.queue[0] != step.req:
                self.out_of_turn.append(
                    f"request {step.req} acquired before request {self.queue[0]}, queued earlier"
                )
            self.queue.remove(step.req)
        self._hold(step)

    def _hold(self, step: Step) -> None:
        if step.conn in self.holders:
            self.faults.append(
                f"requests {self.holders[step.conn]} and {step.req} share connection {step.conn}"
            )
        self.holders[step.conn] = step.req
        self.peak_busy = max(self.peak_busy, len(self.holders))


_POOL = (
    Kind.POOL_QUEUED,
    Kind.POOL_ACQUIRED,
    Kind.POOL_RELEASED,
    Kind.POOL_REFUSED,
    Kind.POOL_JOINED,
    Kind.POOL_LEFT,
    Kind.POOL_SUSPENDED,
    Kind.POOL_RESUMED,
    Kind.CONNECTION_OPENING,
)


def pool_steps(history: History) -> Iterator[tuple[PairName, Step]]:
    """Yield every pool event with its (sender, receiver) pair, in order of time."""
    for step in history.of(*_POOL):
        yield (step.node, step.peer), step


def replay_pools(history: History) -> dict[PairName, PoolReplay]:
    """Replay every pool of the run to its end."""
    pools: dict[PairName, PoolReplay] = {}
    for step in heapq.merge(history.of(*_POOL), history.connections, key=in_order):
        pools.setdefault((step.node, step.peer), PoolReplay()).take(step)
    return pools
