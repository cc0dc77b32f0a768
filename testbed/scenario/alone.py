"""A topology or a tc profile without a study around it: for calibration and for Mininet's tool.

The rest of the scenario (workload, model, window) is that of ``hello`` and stands idle.
"""

from __future__ import annotations

from collections.abc import Mapping

from testbed.scenario.load import load_scenario
from testbed.scenario.value import Scenario

FRAME = "hello"
PROFILE_TOPOLOGY, PROFILE_LINK = "two-dc", "wan"
"""Where a profile is put to be looked at: the one leg between two sites."""


def topology_alone(
    name: str, parameters: Mapping[str, int] | None = None, overrides: tuple[str, ...] = ()
) -> Scenario:
    """The topology with its own profiles. Raises ScenarioError."""
    settings = [f"topology.name={name}", "links={}"]
    settings += [f"topology.parameters.{key}={value}" for key, value in (parameters or {}).items()]
    return load_scenario(FRAME, (*settings, *overrides))


def profile_alone(name: str, overrides: tuple[str, ...] = ()) -> Scenario:
    """One leg with the profile, links of class ``PROFILE_LINK``. Raises ScenarioError."""
    leg = f"links={{{PROFILE_LINK}: {{profile: {name}}}}}"
    return load_scenario(
        FRAME, (f"topology={{name: {PROFILE_TOPOLOGY}, parameters: {{legs: 1}}}}", leg, *overrides)
    )
