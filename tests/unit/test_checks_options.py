"""The checks of the serving plane know P's first token and a cache at RLD."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.checks import Check, Finding, Status, examine
from testbed.checks.authority_single import AuthoritySingle
from testbed.checks.cache_conserved import CacheConserved
from testbed.checks.route_kept import RouteKept
from testbed.contract.event import Kind, Value
from testbed.contract.plan import Plan
from testbed.contract.serving import FirstToken
from tests.fakes.plane_run import (
    BLOCK_BYTES,
    BLOCKS,
    BUDGET,
    Event,
    event,
    plane_case,
    plane_events,
    plane_plan,
)


def changed(**options: object) -> Plan:
    """The plan with other settings of its serving part."""
    plan = plane_plan()
    agents = []
    for agent in plan.agents:
        assert agent.serving is not None
        serving = agent.serving.model_copy(update=options)
        agents.append(agent.model_copy(update={"serving": serving}))
    return plan.model_copy(update={"agents": tuple(agents)})


def look(folder: Path, events: list[Event], plan: Plan, check: Check) -> Finding:
    (finding,) = examine(plane_case(folder, events, plan), (check,))
    return finding


def from_p(events: list[Event], upto: int = 1) -> list[Event]:
    """The first tokens of every stream come from P."""
    for one in events:
        if one["kind"] == Kind.TOKEN.value and int(str(one["pos"])) < upto:
            one["source"] = "p1"
    return events


@pytest.mark.parametrize("check", [AuthoritySingle(), RouteKept()])
def test_the_first_token_may_be_ps_where_the_scenario_says_so(tmp_path: Path, check: Check) -> None:
    prefilled = changed(first_token=FirstToken.PREFILL)
    assert look(tmp_path, from_p(plane_events()), prefilled, check).status is Status.PASS


def test_otherwise_no_token_is_ps(tmp_path: Path) -> None:
    finding = look(tmp_path, from_p(plane_events()), plane_plan(), AuthoritySingle())
    assert any("came from p1, then md1" in fault for fault in finding.violations)


def test_the_second_token_is_never_ps(tmp_path: Path) -> None:
    prefilled = changed(first_token=FirstToken.PREFILL)
    finding = look(tmp_path, from_p(plane_events(), 2), prefilled, AuthoritySingle())
    assert finding.status is Status.FAIL


def test_p_has_no_token_before_its_prefill_has_ended(tmp_path: Path) -> None:
    events = from_p(plane_events())
    for one in events:
        if one["kind"] == Kind.PREFILL_END.value and one["req"] == 0:
            one["t"] = 51_000_000
    finding = look(tmp_path, events, changed(first_token=FirstToken.PREFILL), RouteKept())
    assert "request 0 was answered by p1 before its KV was verified" in finding.violations


def put(events: list[Event], kind: Kind, req: int, **fields: Value) -> None:
    """Change fields of the first event of a kind for a request."""
    next(one for one in events if (one["kind"], one.get("req")) == (kind.value, req)).update(fields)


def test_an_rld_that_never_began_holds_no_position_of_p(tmp_path: Path) -> None:
    events = from_p(plane_events())
    for one in events:
        if one["kind"] == Kind.TOKEN.value and (one["req"], one["pos"]) == (1, 1):
            one["source"] = "md1"
    put(events, Kind.HANDOFF_END, 1, position=1)
    put(events, Kind.RELAY_END, 1, tokens=0, ids=0, cause="cancelled")
    prefilled = changed(first_token=FirstToken.PREFILL)
    assert look(tmp_path, events, prefilled, AuthoritySingle()).violations == ()


@pytest.mark.parametrize(
    ("tokens", "words"),
    [(0, "has 1 tokens of RLD, which emitted 0"), (1, "has 1 tokens of RLD, which emitted 0"),
     (3, "both held positions from 2 on")],
)  # fmt: skip
def test_behind_ps_token_rld_and_md_share_no_position(
    tmp_path: Path, tokens: int, words: str
) -> None:
    events = from_p(plane_events())
    put(events, Kind.RELAY_END, 1, tokens=tokens)
    finding = look(tmp_path, events, changed(first_token=FirstToken.PREFILL), AuthoritySingle())
    assert len(finding.violations) == 1
    assert words in finding.violations[0]


def with_cache(blocks: int, published: int) -> tuple[list[Event], Plan]:
    """RLD holds two blocks of request 1 and is sent ``blocks``, of which it keeps some."""
    caches = plane_plan().agents[0].serving
    assert caches is not None
    plan = changed(caches=caches.caches.model_copy(update={"relay_bytes": BUDGET}))
    events = plane_events()
    for one in events:
        if one.get("req") == 1 and "r1" in (one["node"], one.get("peer")) and "blocks" in one:
            one["blocks"] = blocks
    held = BLOCKS * BLOCK_BYTES
    events += [
        event(101, "r1", Kind.CACHE_MATCHED, held, req=1, blocks=2, of=BLOCKS),
        event(101, "r1", Kind.CACHE_RESERVED, held, req=1, blocks=6, evicted=0, reason=""),
        event(
            112, "r1", Kind.CACHE_PUBLISHED, held + published * BLOCK_BYTES, req=1,
            blocks=published, evicted=0,
        ),
        event(
            900, "r1", Kind.CACHE_CLOSED, held + published * BLOCK_BYTES,
            blocks=BLOCKS + published, locks=0, reservations=0,
        ),
    ]  # fmt: skip
    return events, plan


@pytest.mark.parametrize("check", [CacheConserved(), RouteKept()])
def test_a_cache_at_rld_spares_the_blocks_that_it_holds(tmp_path: Path, check: Check) -> None:
    events, plan = with_cache(6, 6)
    finding = look(tmp_path, events, plan, check)
    assert finding.violations == ()


def test_a_cache_at_rld_gets_no_block_that_it_holds(tmp_path: Path) -> None:
    events, plan = with_cache(BLOCKS, 6)
    finding = look(tmp_path, events, plan, RouteKept())
    assert any("8 blocks for r1, due were 6" in fault for fault in finding.violations)


def test_a_cache_at_rld_adds_up(tmp_path: Path) -> None:
    events, plan = with_cache(6, 7)
    finding = look(tmp_path, events, plan, CacheConserved())
    assert any("r1: request 1 published 7 blocks" in fault for fault in finding.violations)
