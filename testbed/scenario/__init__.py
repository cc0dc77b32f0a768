"""YAML becomes one checked, frozen Scenario, or every fault at ``file:line``.

This room reads files and nothing else: it draws no requests, makes no plan and
touches no machine. Scenarios, topologies and profiles are data; adding a study is
adding a file.
"""

from testbed.scenario.load import load_recorded, load_scenario
from testbed.scenario.named import load_profile, load_topology
from testbed.scenario.value import Scenario

__all__ = ["Scenario", "load_profile", "load_recorded", "load_scenario", "load_topology"]
