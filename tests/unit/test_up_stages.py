"""The lead of containers on their own: what it waits for, what it says, whose failure it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.contract.meeting import LOAD, MEASURE, STOP, Meeting, Said
from testbed.contract.plan import Plan
from testbed.contract.role import NodeKind, Role
from testbed.errors import AgentError, HostError, LabError
from testbed.run.prepare import prepare
from testbed.run.up import stages as module
from testbed.run.up.record import ROWS, wires_of
from testbed.run.up.stages import Stages

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def plan() -> Plan:
    return prepare("hello", lab="compose", clock="real").plan


class Cast:
    """All containers of a run, whose words are said beforehand."""

    def __init__(self, run: Path, plan: Plan) -> None:
        self.meeting = Meeting(run)
        self.meeting.open()
        self.plan = plan
        self.wires = wires_of(plan.network)

    def say(self, said: Said, *names: str) -> None:
        for name in names:
            self.meeting.say(said, name, "0")

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(agent.node for agent in self.plan.agents)

    @property
    def fabric(self) -> tuple[str, ...]:
        nodes = self.plan.network.nodes
        return tuple(n.name for n in nodes if n.kind is not NodeKind.AGENT)


@pytest.fixture
def cast(tmp_path: Path, plan: Plan) -> Cast:
    return Cast(tmp_path, plan)


@pytest.fixture
def stages(tmp_path: Path, plan: Plan, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Stages:
    for name in ("_START_S", "_MEASURE_S", "_LOAD_S", "_STOP_S", "_STEP_S"):
        monkeypatch.setattr(module, name, 0)
    return Stages(tmp_path, plan)


def test_a_run_from_beginning_to_end(stages: Stages, cast: Cast) -> None:
    cast.say(Said.BUILT, *cast.fabric)
    cast.say(Said.HERE, *cast.agents)
    stages.build()
    cast.say(Said.MEASURED, *(f"{wire}{ROWS}" for wire in cast.wires))
    stages.measure()
    assert cast.meeting.names(Said.WORD) == {f"{MEASURE}{wire}" for wire in cast.wires}
    cast.say(Said.READY, *cast.agents)
    stages.load()
    assert cast.meeting.heard(Said.WORD, LOAD) == ""
    assert cast.meeting.heard(Said.WORD, "barrier") == str(stages.barrier_ns)
    cast.say(Said.ENDED, *(a.node for a in cast.plan.agents if a.role is Role.CLIENT))
    stages.work()
    assert cast.meeting.heard(Said.WORD, STOP) is None
    cast.say(Said.ENDED, *cast.agents, *cast.wires)
    stages.stop()
    assert cast.meeting.heard(Said.WORD, STOP) == ""


def test_who_is_missing_is_named(stages: Stages, cast: Cast) -> None:
    cast.say(Said.BUILT, *(name for name in cast.fabric if name != "wan2"))
    with pytest.raises(LabError, match=r"wan2: not built"):
        stages.build()


def test_only_one_wire_measures_at_a_time(stages: Stages, cast: Cast) -> None:
    with pytest.raises(LabError, match=cast.wires[0]):
        stages.measure()
    assert cast.meeting.names(Said.WORD) == {f"{MEASURE}{cast.wires[0]}"}


def test_a_wire_that_cannot_go_on_says_why(stages: Stages, cast: Cast) -> None:
    cast.meeting.say(Said.ENDED, "wan1", "3 cannot keep the links shaped: wan1: gone")
    with pytest.raises(LabError, match="keep the links shaped"):
        stages.work()


def test_a_kernel_that_cannot_is_no_invalid_run(stages: Stages, cast: Cast) -> None:
    cast.meeting.say(Said.ENDED, "fab-a", "4 cannot shape the links: kernel 6.1: no sch_netem")
    with pytest.raises(HostError, match="no sch_netem"):
        stages.build()


def test_an_agent_that_fails_is_named(stages: Stages, cast: Cast) -> None:
    cast.meeting.say(Said.ENDED, "p1", "1")
    with pytest.raises(AgentError, match="p1"):
        stages.work()


def test_a_server_that_ends_before_it_is_told_to_is_named(stages: Stages, cast: Cast) -> None:
    cast.meeting.say(Said.ENDED, "md1", "0")
    with pytest.raises(AgentError, match="md1"):
        stages.work()


def test_a_client_that_outlives_its_deadline_ends_the_run(stages: Stages) -> None:
    with pytest.raises(LabError, match="outlived its deadline"):
        stages.work()
