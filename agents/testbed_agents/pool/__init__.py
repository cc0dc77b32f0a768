"""Which transfer gets which connection, and when.

::

    KvSender ──acquire──▶ gate ──▶ discipline (pure) ──▶ line (whose turn it is)
                                    ├ fifo           N connections that are always there
                                    ├ per_transfer   a fresh one for each
                                    ├ lifo           the one used last, idle ones closed
                                    └ lanes          few, opened when needed, kept

``gate`` waits for the rule, with ``opening`` and ``loan``; ``record`` writes the pool's events.
This room never opens, reads or writes a socket.
"""

from testbed_agents.pool.choose import discipline_of
from testbed_agents.pool.discipline import Claim, Closing, Discipline, Ending, Grant, Queued
from testbed_agents.pool.fifo import FifoPool
from testbed_agents.pool.gate import Lease, PoolGate
from testbed_agents.pool.lanes import LanesPool
from testbed_agents.pool.lifo import LifoPool
from testbed_agents.pool.line import Line
from testbed_agents.pool.per_transfer import PerTransferPool
from testbed_agents.pool.refusal import AcquireError, OpenError, Refusal

__all__ = [
    "AcquireError",
    "Claim",
    "Closing",
    "Discipline",
    "Ending",
    "FifoPool",
    "Grant",
    "LanesPool",
    "Lease",
    "LifoPool",
    "Line",
    "OpenError",
    "PerTransferPool",
    "PoolGate",
    "Queued",
    "Refusal",
    "discipline_of",
]
