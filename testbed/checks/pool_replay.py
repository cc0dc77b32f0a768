"""A pool replayed from its events: who waits, who holds which connection.

One pool per (sender, receiver) pair. The replay trusts only the order of events and
their names, not the counts that the agent wrote beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from testbed.checks.history import History, Step
from testbed.contract.event import Kind

PairName = tuple[str, str]


@dataclass(slots=True)
class PoolReplay:
    """One pair's pool between two events."""

    holders: dict[int, int] = field(default_factory=dict)
    """Connection index to the request that holds it."""
    queue: list[int] = field(default_factory=list)
    """Waiting requests, the next to be served first."""
    faults: list[str] = field(default_factory=list)
    peak_busy: int = 0
    peak_waiting: int = 0
    out_of_turn: list[str] = field(default_factory=list)

    def take(self, step: Step) -> None:
        """Apply one event; note what no pool may do."""
        if step.kind is Kind.POOL_QUEUED:
            self.queue.append(step.req)
        elif step.kind is Kind.POOL_ACQUIRED:
            self._acquire(step)
        elif step.kind is Kind.POOL_RELEASED:
            if self.holders.pop(step.conn, None) != step.req:
                self.faults.append(
                    f"request {step.req} released connection {step.conn}, not its own"
                )
        elif step.req in self.queue:  # refused
            self.queue.remove(step.req)
        self.peak_waiting = max(self.peak_waiting, len(self.queue))

    def _acquire(self, step: Step) -> None:
        if step.req not in self.queue:
            self.faults.append(f"request {step.req} acquired without queueing")
        else:
            if self.queue[0] != step.req:
                self.out_of_turn.append(
                    f"request {step.req} acquired before request {self.queue[0]}, queued earlier"
                )
            self.queue.remove(step.req)
        if step.conn in self.holders:
            self.faults.append(
                f"requests {self.holders[step.conn]} and {step.req} share connection {step.conn}"
            )
        self.holders[step.conn] = step.req
        self.peak_busy = max(self.peak_busy, len(self.holders))


_POOL = (Kind.POOL_QUEUED, Kind.POOL_ACQUIRED, Kind.POOL_RELEASED, Kind.POOL_REFUSED)


def pool_steps(history: History) -> Iterator[tuple[PairName, Step]]:
    """Yield every pool event with its (sender, receiver) pair, in order of time."""
    for step in history.of(*_POOL):
        yield (step.node, step.peer), step


def replay_pools(history: History) -> dict[PairName, PoolReplay]:
    """Replay every pool of the run to its end."""
    pools: dict[PairName, PoolReplay] = {}
    for pair, step in pool_steps(history):
        pools.setdefault(pair, PoolReplay()).take(step)
    return pools
