"""What a scenario expects of its run, at the scale at which it was run."""

from __future__ import annotations

import json
from pathlib import Path

from testbed.checks.expectation import Bound, Expectation
from testbed.checks.finding import Status
from testbed.contract.scale import FULL, Scale
from testbed.scenario import Scenario
from testbed.scenario.metricnames import counts_bytes


def scale_of(run: Path) -> Scale:
    """The scale that a run was planned at."""
    plan = json.loads((run / "plan.json").read_text(encoding="utf-8"))
    return Scale.model_validate(plan["scale"]) if "scale" in plan else FULL


def expectation(scenario: Scenario, size: float = 1.0) -> Expectation | None:
    """The scenario's ``expect:`` as the judge takes it; bounds on bytes are ``size`` times that."""
    expect = scenario.expect
    bounds = tuple(
        Bound(
            metric=name,
            relation=relation,
            limit=limit * size if counts_bytes(name) else limit,
        )
        for name, relation, limit in expect.limits
    )
    if expect.verdict == "pass" and not expect.violations and not bounds:
        return None
    return Expectation(
        verdict=Status(expect.verdict), violations=tuple(expect.violations), bounds=bounds
    )
