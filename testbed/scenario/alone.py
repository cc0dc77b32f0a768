"""A topology or a tc profile without a study around it: for calibration and for Mininet's tool.

The rest of the scenario (workload, model, window) is that of ``hello`` and stands idle.
"""

from __future__ import annotations

from collections.abc import Mapping

from testbed.scenario.data import DataKind, find
from testbed.scenario.document import Document, read_document
from testbed.scenario.load import load_document
from testbed.scenario.override import override
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
    return _framed((*settings, *overrides))


def profile_alone(name: str, overrides: tuple[str, ...] = ()) -> Scenario:
    """One leg with the profile, links of class ``PROFILE_LINK``. Raises ScenarioError."""
    leg = f"links={{{PROFILE_LINK}: {{profile: {name}}}}}"
    return _framed(
        (f"topology={{name: {PROFILE_TOPOLOGY}, parameters: {{legs: 1}}}}", leg, *overrides)
    )


def _framed(settings: tuple[str, ...]) -> Scenario:
    """The frame with ``settings``; its lines are not the caller's, so no fault names them."""
    path = find(DataKind.SCENARIOS, FRAME)
    frame = read_document(path)
    unseen = Document("--set", frame.data, dict.fromkeys(frame.places, "--set"))
    return load_document(override(unseen, settings), path)
