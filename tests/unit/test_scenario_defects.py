"""``defects:`` switch protections off, in the field library and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.contract.defect import Defect, without
from testbed.errors import ScenarioError
from testbed.scenario import data, load_recorded, load_scenario
from tests.unit.test_plan_make import plan

pytestmark = pytest.mark.unit

TEXT = 'name: {name}\nextends: hello\ndescription: "one protection is off"\ndefects: [abort-ack]\n'


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A field library of one scenario, in place of the shipped one."""
    folder = tmp_path / "scenarios" / "field"
    folder.mkdir(parents=True)
    monkeypatch.setattr("testbed.scenario.data.field_folder", lambda: folder)
    monkeypatch.setattr("testbed.scenario.defects.field_folder", lambda: folder)
    (folder / "odd.yaml").write_text(TEXT.format(name="odd"))
    return folder


def faults_of(path: str, *settings: str) -> tuple[str, ...]:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path, settings)
    return caught.value.faults


def test_a_scenario_of_the_library_may_by_path_and_by_name(library: Path) -> None:
    for name in ("odd", str(library / "odd.yaml")):
        assert load_scenario(name).file.defects == (Defect.ABORT_ACK,)


def test_a_file_elsewhere_may_not(library: Path, tmp_path: Path) -> None:
    path = tmp_path / "even.yaml"
    path.write_text(TEXT.format(name="even"))
    (fault,) = faults_of(str(path))
    assert fault.startswith(f"{path}:4: defects: switches protections off")
    assert "leave defects out" in fault


def test_nor_one_that_extends_one_of_the_library(library: Path, tmp_path: Path) -> None:
    path = tmp_path / "even.yaml"
    text = 'name: even\nextends: odd\ndescription: "taken over"\n'
    path.write_text(text)
    (fault,) = faults_of(str(path))
    assert fault.startswith(f"{library / 'odd.yaml'}:4: defects:")
    path.write_text(text + "defects: []\n")
    assert load_scenario(str(path)).file.defects == ()


def test_nor_a_setting(library: Path) -> None:
    for name in ("hello", "odd"):
        (fault,) = faults_of(name, "defects=[digest-check]")
        assert fault.startswith("--set defects: ")
    assert load_scenario("odd", ("defects=[]",)).file.defects == ()


def test_a_link_into_the_library_does_not_count_as_it(library: Path, tmp_path: Path) -> None:
    path = tmp_path / "outside.yaml"
    path.write_text(TEXT.format(name="inside"))
    (library / "inside.yaml").symlink_to(path)
    assert "switches protections off" in faults_of(str(library / "inside.yaml"))[0]


def test_an_unknown_protection_is_listed(library: Path) -> None:
    (library / "odd.yaml").write_text(TEXT.format(name="odd").replace("abort-ack", "abort"))
    assert "late-write-fence" in faults_of("odd")[0]


def test_the_plan_and_every_agent_are_told(library: Path, tmp_path: Path) -> None:
    scenario = load_scenario("odd")
    made = plan(scenario)
    assert made.defects == (Defect.ABORT_ACK,)
    assert all(not agent.guards(Defect.ABORT_ACK) for agent in made.agents)
    assert all(agent.guards(Defect.DIGEST_CHECK) for agent in made.agents)
    assert ("protections off", "abort-ack") in made.summary
    run = tmp_path / "scenario.yaml"
    run.write_text(scenario.resolved_yaml())
    assert load_recorded(run).file.defects == (Defect.ABORT_ACK,)
    assert "switches protections off" in faults_of(str(run))[0]


def test_a_plan_with_all_protections_says_nothing_of_them() -> None:
    assert "defects" not in plan(load_scenario("hello")).model_dump_json()


def test_in_words() -> None:
    assert without(()) == ""
    assert without((Defect.ABORT_ACK,)) == "Protections off: abort-ack."


def test_the_library_lies_beside_the_shipped_scenarios() -> None:
    assert data.field_folder() == data.folder(data.DataKind.SCENARIOS) / "field"
