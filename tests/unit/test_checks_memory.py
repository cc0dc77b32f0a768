"""Device memory and ids of RLD's tokens: every way to break them that an event can show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.checks import Check, Finding, Status, examine
from testbed.checks.ids_told import IdsTold
from testbed.checks.memory_kept import MemoryKept
from testbed.contract.event import Kind, Value
from testbed.contract.plan import Plan
from testbed.contract.serving import DeviceLimits, FirstToken
from tests.fakes.plane_run import (
    KV_BYTES,
    TOKEN_BYTES,
    Event,
    event,
    plane_case,
    plane_events,
    plane_plan,
)

Change = Callable[[list[Event]], None]


def of(events: list[Event], kind: Kind, req: int, node: str) -> Event:
    return next(
        one for one in events if (one["kind"], one.get("req"), one["node"]) == (kind, req, node)
    )


def put(kind: Kind, req: int, node: str, **fields: Value) -> Change:
    return lambda events: of(events, kind, req, node).update(fields)


def drop(kind: Kind, req: int, node: str) -> Change:
    return lambda events: events.remove(of(events, kind, req, node))


def add(ms: int, node: str, kind: Kind, size: int = 0, **fields: Value) -> Change:
    return lambda events: events.append(event(ms, node, kind, size, **fields))


def look(folder: Path, change: Change, check: Check, plan: Plan | None = None) -> Finding:
    events = plane_events()
    change(events)
    (finding,) = examine(plane_case(folder, events, plan), (check,))
    return finding


def serving(plan: Plan, **changes: object) -> Plan:
    agents = []
    for agent in plan.agents:
        assert agent.serving is not None
        agents.append(
            agent.model_copy(update={"serving": agent.serving.model_copy(update=changes)})
        )
    return plan.model_copy(update={"agents": tuple(agents)})


ADMITTED, PREEMPTED, END = Kind.SEQUENCE_ADMITTED, Kind.SEQUENCE_PREEMPTED, Kind.RELAY_END
MEMORY: dict[str, tuple[Change, str]] = {
    "far too much": (put(ADMITTED, 0, "md1", size=10**15), "1,000,000,000,000,000 bytes in use"),
    "one token too much": (
        put(ADMITTED, 0, "md1", size=KV_BYTES + 4 * TOKEN_BYTES + 1), "bytes in use at 41000000 ns"
    ),
    "one byte short": (put(ADMITTED, 0, "md1", size=KV_BYTES - 1), "by 1 sequences of"),
    "less than none": (put(ADMITTED, 0, "md1", size=-1), "-1 bytes in use"),
    "none of two": (put(ADMITTED, 1, "md1", size=KV_BYTES), "by 2 sequences of"),
    "more hold it than came": (put(ADMITTED, 0, "md1", held=2, size=2 * KV_BYTES), "2 sequences"),
    "nobody holds it": (put(ADMITTED, 0, "md1", held=0, size=0), "and nobody holds memory"),
    "MD never admitted": (
        drop(ADMITTED, 0, "md1"), "md1: request 0 was decoded before it was admitted"
    ),
    "RLD never admitted": (
        drop(ADMITTED, 2, "r1"), "r1: request 2 was decoded before it was admitted"
    ),
    "admitted late": (
        put(ADMITTED, 3, "md1", t=310_000_000), "md1: request 3 was decoded before"
    ),
    "admitted twice": (
        add(60, "md1", ADMITTED, KV_BYTES, req=0, held=1, waiting=0, again=True),
        "request 0 was admitted twice",
    ),
    "preempted, never admitted": (
        add(60, "md1", PREEMPTED, KV_BYTES, req=4, held=1, waiting=1, tokens=0),
        "request 4 was preempted without being admitted",
    ),
    "at P": (
        add(60, "p1", ADMITTED, KV_BYTES, req=0, held=1, waiting=0, again=False),
        "p1: a sequence.admitted where no sequence is decoded",
    ),
}  # fmt: skip
IDS: dict[str, tuple[Change, str]] = {
    "no bytes": (put(END, 1, "r1", size=0), "has 2 ids of r1 in 0 bytes"),
    "under a byte each": (put(END, 2, "r1", size=2), "has 3 ids of r1 in 2 bytes"),
    "far too many": (put(END, 1, "r1", size=10**15), "has 2 ids of r1 in 1000000000000000 bytes"),
    "not all": (put(END, 1, "r1", ids=1), "has 2 tokens of r1, which told 1 of 2 ids"),
    "more than there are": (put(END, 1, "r1", ids=3), "which told 3 of 2 ids"),
    "without an MD": (put(END, 4, "r1", ids=2, size=26), "which told 2 of 0 ids"),
    "bytes of none": (put(END, 4, "r1", size=1), "has 0 ids of r1 in 1 bytes"),
}


@pytest.mark.parametrize(
    ("check", "change", "words"),
    [
        pytest.param(check, change, words, id=f"{check.name}: {name}")
        for check, ways in ((MemoryKept(), MEMORY), (IdsTold(), IDS))
        for name, (change, words) in ways.items()
    ],
)
def test_a_broken_claim_is_noticed(
    tmp_path: Path, check: Check, change: Change, words: str
) -> None:
    finding = look(tmp_path, change, check)
    assert finding.status is Status.FAIL
    assert any(words in violation for violation in finding.violations), finding.violations


@pytest.mark.parametrize(("limit", "status"), [(2, Status.PASS), (1, Status.FAIL)])
def test_the_limit_is_that_of_the_instance(tmp_path: Path, limit: int, status: Status) -> None:
    plan = serving(plane_plan(), memory=DeviceLimits(decode_bytes=limit * KV_BYTES))
    assert look(tmp_path, lambda events: None, MemoryKept(), plan).status is status


def test_without_a_limit_of_its_own_the_hardware_sets_it(tmp_path: Path) -> None:
    plan = serving(plane_plan(), memory=DeviceLimits())
    for limit, status in ((0, Status.PASS), (KV_BYTES, Status.FAIL)):
        agents = tuple(
            agent.model_copy(
                update={"hardware": agent.hardware.model_copy(update={"kv_memory_bytes": limit})}
            )
            for agent in plan.agents
        )
        folder = tmp_path / str(limit)
        folder.mkdir()
        small = plan.model_copy(update={"agents": agents})
        assert look(folder, lambda events: None, MemoryKept(), small).status is status


def test_who_was_preempted_may_come_again(tmp_path: Path) -> None:
    def change(events: list[Event]) -> None:
        add(151, "md1", PREEMPTED, KV_BYTES, req=1, held=1, waiting=1, tokens=1)(events)
        add(152, "md1", ADMITTED, KV_BYTES, req=1, held=1, waiting=0, again=True)(events)

    assert look(tmp_path, change, MemoryKept()).violations == ()


def test_md_may_pass_on_tokens_of_a_lost_rld_without_memory(tmp_path: Path) -> None:
    def change(events: list[Event]) -> None:
        for one in events:
            if (one["kind"], one.get("req")) == (Kind.TOKEN, 2):
                one["source"] = "md1"
        put(END, 2, "r1", cause="cancelled")(events)

    assert look(tmp_path, change, MemoryKept()).violations == ()

    def unexplained(events: list[Event]) -> None:
        change(events)
        put(END, 2, "r1", cause="last")(events)

    assert look(tmp_path, unexplained, MemoryKept()).status is Status.FAIL


def test_ps_token_is_not_told_by_rld(tmp_path: Path) -> None:
    plan = serving(plane_plan(), first_token=FirstToken.PREFILL)

    def one_less(events: list[Event]) -> None:
        for req, ids in ((1, 1), (2, 2)):
            put(END, req, "r1", ids=ids)(events)

    assert look(tmp_path, one_less, IdsTold(), plan).violations == ()
    assert look(tmp_path, lambda events: None, IdsTold(), plan).status is Status.FAIL


def test_ids_to_a_lost_md_need_no_bytes(tmp_path: Path) -> None:
    def change(events: list[Event]) -> None:
        put(END, 1, "r1", size=0)(events)
        add(151, "rt1", Kind.INSTANCE_LOST, peer="md1", role="decode", under_way=1)(events)

    assert look(tmp_path, change, IdsTold()).violations == ()
