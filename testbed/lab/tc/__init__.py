"""Traffic control of wires: apply what the compiler made, read it back, compare, count.

Requests go out through pyroute2 with our own option bytes; answers are read through a
plain netlink socket of our own, so that a fault of one path cannot hide in the other::

    wire namespace:  a.wire_device ──mirred──▶ inner[0] ══veth══ inner[1] ──mirred──▶ b.wire_device
                                               police+netem                           netem
"""

from __future__ import annotations

from testbed.lab.tc.applied import AppliedQdisc, Direction, FieldCheck
from testbed.lab.tc.counters import LinkCounters, link_counters
from testbed.lab.tc.wire import Wire, apply_link, read_back

__all__ = [
    "AppliedQdisc",
    "Direction",
    "FieldCheck",
    "LinkCounters",
    "Wire",
    "apply_link",
    "link_counters",
    "read_back",
]
