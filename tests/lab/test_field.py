"""The field library in the guest: each failure happens as reported, and not with its remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.checks.finding import Status
from testbed.run.execute import execute
from testbed.run.prepare import prepare
from testbed.scenario.data import field_names

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("name", field_names())
def test_the_run_is_as_the_scenario_expects(name: str, tmp_path: Path) -> None:
    finished = execute(prepare(name, place=tmp_path), tmp_path / "run")
    assert finished.verdict.verdict is Status.PASS, finished.verdict.in_words()
