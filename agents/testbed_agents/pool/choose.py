"""From the plan's choice to the rule itself."""

from __future__ import annotations

from testbed.contract.pool import Fifo, Lanes, Lifo, PerTransfer, Pool
from testbed_agents.pool.discipline import Discipline
from testbed_agents.pool.fifo import FifoPool
from testbed_agents.pool.lanes import LanesPool
from testbed_agents.pool.lifo import LifoPool
from testbed_agents.pool.line import Line
from testbed_agents.pool.per_transfer import PerTransferPool


def discipline_of(pool: Pool) -> Discipline:
    """A fresh rule for one (sender, receiver) pair."""
    match pool.discipline:
        case Fifo():
            return FifoPool(pool.most, pool.queue, pool.acquire_timeout_ns, pool.order)
        case PerTransfer(ports=ports):
            return PerTransferPool(pool.size, ports, _line(pool))
        case Lifo(ports=ports, idle_timeout_ns=idle_timeout_ns):
            return LifoPool(pool.size, ports, _line(pool), idle_timeout_ns)
        case Lanes():
            return LanesPool(pool.most, _line(pool))


def _line(pool: Pool) -> Line:
    return Line(pool.queue, pool.acquire_timeout_ns, pool.order)
