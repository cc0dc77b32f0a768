"""A null leaves a key out: it has its default, or is missing where it has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.errors import ScenarioError
from testbed.scenario import load_scenario
from testbed.scenario.expect import Expect
from testbed.scenario.file import FifoPoolChoice, ScenarioFile
from testbed.scenario.service import SlaChoice

STUDY = """
extends: pdd-hello
name: nulls
description: "Keys that are left out"
sla: null
pool: null
expect: null
"""


@pytest.mark.parametrize("key", ["expect", "sla", "workload.prompts", "prices", "pool", "links"])
def test_null_on_the_command_line_leaves_an_optional_key_out(key: str) -> None:
    file: object = load_scenario("pdd-hello", (f"{key}=null",)).file
    default: object = ScenarioFile.model_fields.get(key)
    for part in key.split("."):
        file = getattr(file, part)
    if key == "workload.prompts":
        assert file == type(file)()
    else:
        assert default is not None
        found = ScenarioFile.model_fields[key].get_default(call_default_factory=True)
        assert file == found


def test_null_in_a_file_leaves_an_optional_key_out(tmp_path: Path) -> None:
    path = tmp_path / "nulls.yaml"
    path.write_text(STUDY)
    file = load_scenario(str(path)).file
    assert (file.expect, file.sla, file.pool) == (Expect(), SlaChoice(), FifoPoolChoice())


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("window=null", "--set window: window: is missing"),
        ("serving.pipeline=null", "--set serving.pipeline: serving.pipeline: is missing"),
        ("prompts=null", "--set prompts: prompts: unknown key"),
    ],
)
def test_null_neither_removes_what_is_needed_nor_makes_a_key_known(
    setting: str, reason: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario("pdd-hello", (setting,))
    assert reason in "\n".join(caught.value.faults)


def test_a_null_hides_no_other_fault() -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario("pdd-hello", ("expect=null", "pool.size=0", "seed=x"))
    faults = "\n".join(caught.value.faults)
    assert "--set pool.size" in faults
    assert "--set seed" in faults
    assert "expect" not in faults


@pytest.mark.parametrize("bound", ["> 1", ">1", ">= 90 %"])
def test_a_bound_without_inner_quotes_says_how_to_write_it(bound: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario("pdd-hello", (f"expect.metrics.requests.completed={bound}",))
    (fault,) = caught.value.faults
    assert f"""--set 'expect.metrics.requests.completed="{bound}"'""" in fault
    if "%" not in bound:
        quoted = f'expect.metrics.requests.completed="{bound}"'
        assert "requests.completed" in load_scenario("pdd-hello", (quoted,)).expect.metrics
