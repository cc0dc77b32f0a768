"""Agents that a fault of the plan kills, or lets stand still, are not blamed for what follows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.checks import judge
from testbed.checks.case import read_case
from testbed.checks.finding import Finding, Status
from testbed.checks.planned_ends import able_at, killed_at
from testbed.contract.ailment import SlowCompute
from testbed.contract.fault import AgentFault, NodeFault, PlannedFault, Span
from testbed.contract.plan import Plan
from testbed.contract.trigger import Trigger
from testbed.run.prepare import prepare
from tests.fakes.fake_run import FakeRun
from tests.fakes.run_folder import write_run_folder

pytestmark = pytest.mark.unit
S = 10**9


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    return write_run_folder(folder, FakeRun(rate=20, warm_up_s=1, measure_s=2, pool=4))


def finding(run: Path, check: str) -> Finding:
    return next(found for found in judge(run).findings if found.check == check)


def put(run: Path, *faults: PlannedFault) -> Plan:
    path = run / "plan.json"
    plan = Plan.model_validate_json(path.read_bytes()).model_copy(update={"faults": faults})
    path.write_text(plan.model_dump_json())
    return plan


def events(run: Path, node: str, *more: dict[str, object], without: str = "") -> None:
    path = run / "events" / f"{node}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    head = {"node": node, "size": 0}
    lines = [line for line in lines if line["kind"] != without] + [{**head, **one} for one in more]
    lines.sort(key=lambda line: line["t"])
    path.write_text("".join(json.dumps({**line, "seq": n}) + "\n" for n, line in enumerate(lines)))


def act(what: str, *spans: Span, node: str = "md1") -> NodeFault:
    return NodeFault(name=f"{what}-1", spans=spans, nodes=(node,), act=what)


def slow(begin_ns: int, end_ns: int, node: str = "md1") -> AgentFault:
    return AgentFault(
        name="slow-2", spans=(Span(begin_ns=begin_ns, end_ns=end_ns),), nodes=(node,),
        effect=SlowCompute(factor=2.0),
    )  # fmt: skip


def said(what: str, t: int) -> dict[str, object]:
    return {"t": t, "kind": f"fault.{what}", "fault": "slow-2", "subject": "md1"}


def test_an_agent_that_the_plan_kills_need_not_stop(run: Path) -> None:
    events(run, "md1", without="agent.stop")
    assert finding(run, "agents-stopped").status is Status.INVALID
    put(run, act("kill", Span(begin_ns=S)))
    found = finding(run, "agents-stopped")
    assert found.status is Status.PASS
    assert found.evidence.endswith("killed by the plan: md1")


@pytest.mark.parametrize("fault", [act("kill", Span(begin_ns=S), node="p1"), act("pause")])
def test_another_fault_excuses_nobody(run: Path, fault: NodeFault) -> None:
    events(run, "md1", without="agent.stop")
    put(run, fault)
    assert finding(run, "agents-stopped").status is Status.INVALID


@pytest.mark.parametrize(
    ("began_at", "good"),
    [(2 * S, True), (2 * S + 900_000, True), (2 * S + 1_100_000, False), (S - 1, False)],
)
def test_what_falls_into_a_pause_is_due_behind_it(run: Path, began_at: int, good: bool) -> None:
    put(run, act("pause", Span(begin_ns=S, end_ns=2 * S)), slow(S, 2 * S + S // 2))
    events(run, "md1", said("began", began_at), said("ended", 2 * S + S // 2))
    broken = [one for one in finding(run, "faults-kept").violations if "slow-2" in one]
    assert (broken == []) is good, broken


def test_without_the_pause_it_is_late(run: Path) -> None:
    put(run, slow(S, 2 * S + S // 2))
    events(run, "md1", said("began", 2 * S), said("ended", 2 * S + S // 2))
    assert finding(run, "faults-kept").status is Status.INVALID


@pytest.mark.parametrize("kill_at", [S // 2, S])
def test_a_killed_agent_does_no_more_to_itself(run: Path, kill_at: int) -> None:
    kill = act("kill", Span(begin_ns=kill_at))
    put(run, kill, slow(S, 2 * S))
    assert not [one for one in finding(run, "faults-kept").violations if "slow-2" in one]
    put(run, act("kill", Span(begin_ns=kill_at), node="p1"), slow(S, 2 * S))
    assert [one for one in finding(run, "faults-kept").violations if "slow-2" in one]


def test_what_a_killed_agent_held_ended_with_it_though_nobody_noticed(run: Path) -> None:
    put(run, act("kill", Span(begin_ns=S)), act("kill", Span(begin_ns=S), node="p1"))
    assert read_case(run).history.lost == set(), "both told of their end"
    events(run, "md1", without="agent.stop")
    assert read_case(run).history.lost == {"md1"}


def test_times_of_agents_under_pauses_and_kills(run: Path) -> None:
    plan = put(
        run, act("pause", Span(begin_ns=10, end_ns=20), Span(begin_ns=20, end_ns=30)),
        act("kill", Span(begin_ns=90)), act("pause", Span(begin_ns=50), node="p1"),
    )  # fmt: skip
    assert killed_at(plan, {}) == {"md1": 90}
    assert [able_at(plan, {}, "md1", t) for t in (9, 10, 29, 30, 89, 90)] == [
        9,
        30,
        30,
        30,
        89,
        None,
    ]
    assert [able_at(plan, {}, "p1", t) for t in (49, 50)] == [49, None]


def test_what_waits_is_due_behind_what_it_waited_for(run: Path) -> None:
    seen = Trigger(sender="p1", receiver="md1", transfer=1, progress=0.5)
    kill = act("kill", Span(begin_ns=90)).model_copy(update={"trigger": seen})
    plan = put(run, kill)
    assert killed_at(plan, {}) == {}
    assert killed_at(plan, {kill.name: 1_000}) == {"md1": 1_090}
    assert able_at(plan, {kill.name: 1_000}, "md1", 1_089) == 1_089
    assert able_at(plan, {kill.name: 1_000}, "md1", 1_090) is None


def test_only_an_agent_that_may_be_killed_writes_every_event_at_once() -> None:
    prepared = prepare("pdd-hello", ("faults=[{kind: kill, node: [p1, r1], at: 1 s}]",))
    agents = prepared.plan.agents
    assert {agent.node for agent in agents if agent.mortal} == {"p1", "r1"}
    assert [agent.node for agent in agents if "mortal" in agent.model_dump()] == ["p1", "r1"]
