"""Scenario, requests, seed and host facts become a Plan: pure, no I/O, nothing touched.

Names, addresses, routes, seeds and agents' files are final here. What cannot be
true is refused here, before the first namespace exists.
"""

from testbed.plan.guestpath import RunPaths
from testbed.plan.hostfacts import HostFacts
from testbed.plan.make import GUEST_START_NS, make_plan
from testbed.plan.render import render
from testbed.plan.roster import Capacity, Member, capacity, names_of, roster

__all__ = [
    "GUEST_START_NS",
    "Capacity",
    "HostFacts",
    "Member",
    "RunPaths",
    "capacity",
    "make_plan",
    "names_of",
    "render",
    "roster",
]
