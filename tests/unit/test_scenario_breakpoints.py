"""``breakpoints:``: where a run can stand still, and where it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.errors import PlanError, ScenarioError
from testbed.run.prepare import prepare

pytestmark = pytest.mark.unit


def test_breakpoints_are_in_the_plan_and_no_breakpoints_leave_no_trace(tmp_path: Path) -> None:
    plain = prepare("hello", place=tmp_path).plan
    plan = prepare("hello", ("breakpoints=[500 ms, 1 s]",), place=tmp_path).plan
    assert plan.breakpoints == (500_000_000, 1_000_000_000)
    assert plan.model_copy(update={"breakpoints": ()}) == plain
    assert "breakpoints" not in json.loads(plain.model_dump_json())


@pytest.mark.parametrize(
    ("breakpoints", "words"),
    [
        ("[0 s]", "a multiple of 100 ms above 0"),
        ("[1050 ms]", "a multiple of 100 ms above 0"),
        ("[1 h]", "at the latest"),
        ("[2 s, 1 s]", "must rise"),
        ("[1 s, 1 s]", "must rise"),
        ("[12]", "unit"),
    ],
)
def test_where_a_run_cannot_stand_is_refused_by_name(
    breakpoints: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError, match=words):
        prepare("hello", (f"breakpoints={breakpoints}",), place=tmp_path)


def test_a_real_clock_does_not_stand_still(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="does not stand still") as refused:
        prepare("hello", ("breakpoints=[1 s]",), clock="real", place=tmp_path)
    assert "--clock virtual" in refused.value.remedy
