"""Did the connection pool keep its two promises: never above its bound, nobody out of turn?"""

from __future__ import annotations

from testbed.checks.case import Case
from testbed.checks.finding import Finding, found
from testbed.checks.pool_replay import pool_steps, replay_pools
from testbed.contract.event import Kind
from testbed.contract.pool import Order


class PoolBounded:
    """No pool holds more than its N connections or queues more than its bound."""

    name = "pool-bounded"
    claim = "No pool ever used more than its N connections or queued beyond its bound."

    def examine(self, case: Case) -> Finding:
        """Replay the pools; also look at the counts that the agents wrote."""
        sizes, lost = {agent.node: agent.pool for agent in case.plan.agents}, case.history.lost
        broken: list[str] = []
        peaks: list[str] = []
        for (sender, receiver), pool in sorted(replay_pools(case.history).items()):
            bound = sizes.get(sender)
            name = f"{sender} to {receiver}"
            peaks.append(f"{name}: peak {pool.peak_busy} busy, {pool.peak_waiting} waiting")
            if bound is None:
                broken.append(f"{name}: the sender is not an agent of the plan")
                continue
            if pool.peak_busy > bound.most:
                broken.append(f"{name}: {pool.peak_busy} of {bound.most} connections in use")
            if pool.peak_waiting > bound.queue + 1:  # one may be passing through to a free slot
                broken.append(f"{name}: {pool.peak_waiting} waited, the bound is {bound.queue}")
            broken.extend(f"{name}: {fault}" for fault in pool.faults)
            broken.extend(
                f"{name}: {req} still holds a connection"
                for req in pool.holders.values()
                if sender not in lost
            )
            broken.extend(
                f"{name}: connection {connection} was never closed"
                for connection in sorted(pool.open)
                if sender not in lost
            )
        broken.extend(_beyond_bytes(case))
        for step in case.history.steps:
            bound = sizes.get(step.node)
            if bound is not None and step.busy > bound.most:
                broken.append(f"{step.node} wrote {step.busy} busy of {bound.most} at {step.t} ns")
        return found(self.name, self.claim, "; ".join(peaks) or "no pool was used", broken)


def _beyond_bytes(case: Case) -> list[str]:
    """Pairs for which more bytes waited or were under way than their bound; one transfer may be
    of any size."""
    bounds = {agent.node: agent.guard.queue_bytes for agent in case.plan.agents}
    admitted: dict[tuple[str, str], dict[int, int]] = {}
    peaks: dict[tuple[str, str], int] = {}
    for pair, step in pool_steps(case.history):
        sizes = admitted.setdefault(pair, {})
        if step.kind is Kind.POOL_QUEUED:
            sizes[step.req] = step.size
            if len(sizes) > 1:
                peaks[pair] = max(peaks.get(pair, 0), sum(sizes.values()))
        elif step.kind in (Kind.POOL_RELEASED, Kind.POOL_REFUSED):
            sizes.pop(step.req, None)
    return [
        f"{sender} to {receiver}: {peak} bytes were admitted, the bound is {bounds[sender]}"
        for (sender, receiver), peak in sorted(peaks.items())
        if 0 < bounds.get(sender, 0) < peak
    ]


class PoolFair:
    """Connections are handed out in the order of queueing, where that is the pool's order."""

    name = "pool-first-come"
    claim = "Every pool served its queue first come, first served."

    def examine(self, case: Case) -> Finding:
        """Replay the pools and compare each acquisition with the head of the queue."""
        broken: list[str] = []
        other = {
            agent.node: agent.pool.order
            for agent in case.plan.agents
            if agent.pool.order is not Order.FIRST_COME
        }
        pools = replay_pools(case.history)
        for (sender, receiver), pool in sorted(pools.items()):
            if sender not in other:
                broken.extend(f"{sender} to {receiver}: {fault}" for fault in pool.out_of_turn)
        evidence = f"{len(pools)} pool(s) replayed"
        if other:
            orders = ", ".join(sorted(set(other.values())))
            evidence = f"not applicable: pools are served {orders}"
        return found(self.name, self.claim, evidence, broken)
