"""Which transfer gets which connection, and when: first come, first served, N at a time.

``fifo`` is the pure rule, ``gate`` waits for it and writes the pool's events. This
room never opens, reads or writes a socket.
"""

from testbed_agents.pool.fifo import FifoPool, Grant, Queued
from testbed_agents.pool.gate import Lease, PoolGate
from testbed_agents.pool.refusal import AcquireError, Refusal

__all__ = ["AcquireError", "FifoPool", "Grant", "Lease", "PoolGate", "Queued", "Refusal"]
