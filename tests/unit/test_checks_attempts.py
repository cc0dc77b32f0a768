"""Further attempts and lost instances in a record: what is sound then, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.checks.authority_single import AuthoritySingle
from testbed.checks.check import Check
from testbed.checks.finding import Status
from testbed.checks.ids_told import IdsTold
from testbed.checks.memory_kept import MemoryKept
from testbed.checks.pool_kept import PoolBounded
from testbed.checks.route_kept import RouteKept
from testbed.checks.transfers_verified import TransfersVerified
from testbed.contract.event import Kind
from tests.fakes.plane_run import Event, event, plane_case, plane_events

ALL: tuple[Check, ...] = (
    RouteKept(), AuthoritySingle(), TransfersVerified(), PoolBounded(), MemoryKept(), IdsTold(),
)  # fmt: skip


def after_a_loss() -> list[Event]:
    """``r0`` shows nothing of a first attempt at ``md2``, and is answered by its second."""
    events = [
        {**one, "attempt": 1} if one.get("req") == 0 and one["kind"] != "request.sent" else one
        for one in plane_events()
    ]
    return [
        *events,
        event(0, "rt1", Kind.REQUEST_ROUTED, req=0, pipeline="P-MD", prefill="p2", decode="md2",
              relay="", reason="made up", prefill_hit=6, decode_hit=6),
        event(1, "rt1", Kind.INSTANCE_LOST, peer="p2", role="prefill", under_way=1),
        event(1, "c1", Kind.REQUEST_RETRIED, req=0, attempt=1, reason="prefill-lost"),
    ]  # fmt: skip


def violations(folder: Path, events: list[Event], check: Check) -> tuple[str, ...]:
    finding = check.examine(plane_case(folder, sorted(events, key=lambda one: int(str(one["t"])))))
    assert (finding.status is Status.PASS) == (not finding.violations)
    return finding.violations


@pytest.mark.parametrize("check", ALL, ids=lambda check: check.name)
def test_each_attempt_keeps_to_its_own_route(tmp_path: Path, check: Check) -> None:
    assert violations(tmp_path, after_a_loss(), check) == ()


def test_an_attempt_is_routed_once(tmp_path: Path) -> None:
    events = after_a_loss()
    routed = next(e for e in events if e["kind"] == "request.routed" and e.get("attempt") == 1)
    found = violations(tmp_path, [*events, dict(routed)], RouteKept())
    assert "request 0 was routed 2 times" in found


def test_an_attempt_without_a_route_answers_nothing(tmp_path: Path) -> None:
    events = [
        one for one in after_a_loss() if one["kind"] != "request.routed" or one.get("attempt") != 1
    ]
    found = violations(tmp_path, events, AuthoritySingle())
    assert any("without a route" in one for one in found), found


def test_an_earlier_attempt_does_not_come_back(tmp_path: Path) -> None:
    events = after_a_loss()
    last = [e for e in events if e["kind"] == "token" and e["req"] == 0][-1]
    del last["attempt"]
    found = violations(tmp_path, events, AuthoritySingle())
    assert any("not one after the other" in one for one in found), found


def begun(events: list[Event]) -> list[Event]:
    """A transfer of the first attempt, without an end."""
    return [
        *events,
        event(0, "p2", Kind.POOL_QUEUED, req=0, peer="md2", busy=0, waiting=0),
        event(0, "p2", Kind.POOL_ACQUIRED, req=0, peer="md2", conn=0, wait_ns=0, busy=1,
              waiting=0),
        event(0, "p2", Kind.TRANSFER_START, 100, req=0, peer="md2", conn=0, blocks=2),
    ]  # fmt: skip


@pytest.mark.parametrize("check", [TransfersVerified(), PoolBounded()], ids=lambda one: one.name)
def test_only_a_lost_sender_may_leave_a_transfer_open(tmp_path: Path, check: Check) -> None:
    events = begun(after_a_loss())
    (tmp_path / "lost").mkdir()
    (tmp_path / "alive").mkdir()
    assert violations(tmp_path / "lost", events, check) == ()
    alive = [one for one in events if one["kind"] != "instance.lost"]
    assert violations(tmp_path / "alive", alive, check) != ()
