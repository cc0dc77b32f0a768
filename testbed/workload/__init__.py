"""Turns a scenario's ``workload:`` into requests: when, how long, how many bytes, for whom.

A pure function of (workload, shape, window, seed). It never looks at the network
except for what its legs can carry, and never touches a file except to load a trace.
"""

from testbed.workload.draw import draw
from testbed.workload.record import read_requests, write_requests
from testbed.workload.traces import Trace, load_trace

__all__ = ["Trace", "draw", "load_trace", "read_requests", "write_requests"]
