"""What the serving plane owes under faults: bounded queues, nobody forgotten or left working."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.checks.agents_stopped import AgentsStopped
from testbed.checks.cancel_heard import CancelHeard
from testbed.checks.case import Case
from testbed.checks.check import Check
from testbed.checks.gone_noticed import GoneNoticed
from testbed.checks.queues_bounded import QueuesBounded
from testbed.contract.event import Kind
from testbed.contract.fault import NodeFault, Span
from testbed.contract.serving import Admission
from tests.fakes.plane_run import MS, Event, event, plane_case, plane_events

DEADLINE_MS = 10_000


def case_of(
    folder: Path, events: list[Event], admission: Admission | None = None,
    *faults: NodeFault, drain_ms: int = 0,
) -> Case:  # fmt: skip
    folder.mkdir(exist_ok=True)
    case = plane_case(folder, sorted(events, key=lambda one: int(str(one["t"]))))
    agents = []
    for agent in case.plan.agents:
        serving = agent.serving
        if admission is not None and serving is not None:
            serving = serving.model_copy(update={"admission": admission})
        window = agent.window
        if drain_ms:
            window = window.model_copy(update={"drain_ns": drain_ms * MS})
        agents.append(agent.model_copy(update={"serving": serving, "window": window}))
    plan = case.plan.model_copy(update={"agents": tuple(agents), "faults": faults})
    return Case(plan, case.requests, case.history)


def found(check: Check, case: Case) -> tuple[str, ...]:
    return check.examine(case).violations


def dead(node: str, at_ms: int) -> NodeFault:
    return NodeFault(name="kill-1", spans=(Span(begin_ns=at_ms * MS),), nodes=(node,), act="kill")


def given_up(req: int, at_ms: int, reason: str) -> list[Event]:
    """The run in which a request is not answered."""
    kept = [
        one for one in plane_events()
        if not (one.get("req") == req and one["kind"] in ("token", "request.done"))
    ]  # fmt: skip
    return [*kept, event(at_ms, "c1", Kind.REQUEST_FAILED, req=req, reason=reason)]


@pytest.mark.parametrize("check", [QueuesBounded(), GoneNoticed(), CancelHeard()])
def test_a_sound_run_breaks_none(tmp_path: Path, check: Check) -> None:
    assert found(check, case_of(tmp_path, plane_events())) == ()


def test_more_than_may_be_at_the_router_is_named(tmp_path: Path) -> None:
    events = plane_events()
    sent = [one for one in events if one["kind"] == "request.routed"]
    late = [event(9_000, "c1", Kind.REQUEST_FAILED, req=one["req"], reason="x") for one in sent]
    open_ = [one for one in events if one["kind"] != "request.done"] + late
    admission = Admission(router_requests=len(sent) - 1)
    (fault,) = found(QueuesBounded(), case_of(tmp_path, open_, admission))
    assert fault.startswith(f"rt1 had {len(sent)} requests under way")
    assert fault.endswith(f"may have {len(sent) - 1}")


def test_who_waits_for_the_dead_until_the_deadline_is_named(tmp_path: Path) -> None:
    events = given_up(0, 40_000, "deadline")
    route = next(e for e in events if e["kind"] == "request.routed" and e["req"] == 0)
    main = str(route["decode"])
    case = case_of(tmp_path, events, None, dead(main, 100), drain_ms=39_000)
    assert found(GoneNoticed(), case) == (f"request 0 waited until the deadline for {main}",)


def test_who_stands_still_behind_another_is_named_too(tmp_path: Path) -> None:
    case = case_of(
        tmp_path, given_up(0, 40_000, "deadline"), None, dead("r2", 100), drain_ms=39_000
    )
    (fault,) = found(GoneNoticed(), case)
    assert fault.startswith("request 0 stood still from")


@pytest.mark.parametrize("reason", ["decode-lost", "deadline"])
def test_a_named_failure_and_a_run_without_a_death_are_sound(tmp_path: Path, reason: str) -> None:
    faults = (dead("md1", 100),) if reason != "deadline" else ()
    case = case_of(tmp_path, given_up(0, 40_000, reason), None, *faults, drain_ms=39_000)
    assert found(GoneNoticed(), case) == ()


def test_work_for_who_has_left_is_named(tmp_path: Path) -> None:
    events = given_up(0, 1, "deadline")
    at_ms = 1_500
    late = event(at_ms, "p1", Kind.TRANSFER_START, 1, req=0, peer="md1", conn=0, blocks=1)
    (fault,) = found(CancelHeard(), case_of(tmp_path, [*events, late]))
    assert fault == "p1: transfer.start of request 0 1.499 s after its client gave it up"


def test_a_planned_death_is_no_crash(tmp_path: Path) -> None:
    def stopped(but: str) -> list[Event]:
        nodes = ("c1", "rt1", "p1", "p2", "r1", "r2", "md1", "md2")
        return [event(9_000, node, Kind.AGENT_STOP, status=0) for node in nodes if node != but]

    events = [one for one in plane_events() if one["kind"] != "agent.stop"] + stopped("md1")
    assert found(AgentsStopped(), case_of(tmp_path / "a", events, None, dead("md1", 100))) == ()
    (fault,) = found(AgentsStopped(), case_of(tmp_path / "b", events))
    assert fault == "md1 never stopped: it crashed, hung or was killed"
