"""The checks of the serving plane pass on a sound run and notice each way to break it."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.checks import Check, Status, examine
from testbed.checks.authority_single import AuthoritySingle
from testbed.checks.barrier_passed import BarrierPassed
from testbed.checks.cache_conserved import CacheConserved
from testbed.checks.ids_told import IdsTold
from testbed.checks.memory_kept import MemoryKept
from testbed.checks.route_kept import RouteKept
from testbed.checks.tokens_ordered import TokensOrdered
from testbed.checks.transfers_verified import TransfersVerified
from testbed.contract.event import Kind, Value
from tests.fakes.plane_change import NOBODY, Change, look, pick, put
from tests.fakes.plane_run import (
    BLOCK_BYTES,
    BUDGET,
    MS,
    Event,
    event,
    plane_case,
    plane_events,
    plane_plan,
    transfer,
)

PLANE: tuple[Check, ...] = (
    RouteKept(), AuthoritySingle(), CacheConserved(), MemoryKept(), IdsTold(),
)  # fmt: skip


def drop(kind: str, req: int, node: str = "") -> Change:
    """Take one event away."""
    return lambda events: events.remove(pick(events, kind, req, node))


def repeat(kind: str, req: int, node: str = "") -> Change:
    """Tell one event twice."""
    return lambda events: events.append(dict(pick(events, kind, req, node)))


def add(ms: int, node: str, kind: Kind, **fields: Value) -> Change:
    """Tell of something that did not happen."""
    return lambda events: events.append(event(ms, node, kind, **fields))


def source(req: int, position: int, name: str) -> Change:
    """Let one token come from elsewhere."""

    def change(events: list[Event]) -> None:
        for one in events:
            if one["kind"] == "token" and one["req"] == req and one["pos"] == position:
                one["source"] = name

    return change


def all_of(*changes: Change) -> Change:
    """Several changes at once."""

    def change(events: list[Event]) -> None:
        for one in changes:
            one(events)

    return change


AUTHORITY: dict[str, tuple[Change, str]] = {
    "another MD": (source(0, 1, "md2"), "request 0 came from md1, then md2"),
    "RLD in P-MD": (source(3, 0, "r1"), "request 3 came from r1 on its P-MD route"),
    "MD in P-RLD": (source(4, 1, "md1"), "request 4 came from r1, then md1"),
    "nobody": (source(0, 0, ""), "request 0 came from"),
    "back to RLD": (source(1, 3, "r1"), "request 1 came from r1, then md1, then r1"),
    "MD before RLD": (source(1, 0, "md1"), "request 1 came from md1, then r1"),
    "changes early": (source(1, 1, "md1"), "changes hands at position 1, its handoff ended at 2"),
    "position moved": (put("handoff.end", 1, position=3), "its handoff ended at 3"),
    "no end of handoff": (drop("handoff.end", 1), "has 0 ends of a handoff"),
    "two ends": (repeat("handoff.end", 1), "has 2 ends of a handoff"),
    "no start of handoff": (drop("handoff.start", 1), "has 0 starts of a handoff"),
    "start behind end": (put("handoff.start", 1, t=153 * MS), "or one behind its end"),
    "handoff elsewhere": (put("handoff.end", 1, node="md2"), "at md2, not at its MD md1"),
    "handoff in P-MD": (
        add(60, "md1", Kind.HANDOFF_END, req=0, position=1, computed=1),
        "request 0 has a handoff.end at md1",
    ),
    "taken over for nothing": (
        add(260, "md1", Kind.HANDOFF_END, req=2, position=2, computed=2),
        "was taken over at 2, but RLD streamed all of it",
    ),
    "RLD stopped early": (put("relay.end", 1, tokens=1), "has 2 tokens of RLD, which emitted 1"),
    "RLD went on": (put("relay.end", 1, tokens=3), "both held positions from 2 on"),
    "RLD alone stopped early": (put("relay.end", 2, tokens=2), "request 2 has 3 tokens of RLD"),
    "P-RLD stopped early": (put("relay.end", 4, tokens=1), "request 4 has 2 tokens of RLD"),
    "RLD never ended": (drop("relay.end", 1), "which never gave it up"),
    "RLD ended twice": (repeat("relay.end", 2), "was given up 2 times"),
    "another RLD": (put("relay.end", 1, node="r2"), "relay.end at r2, not at its RLD r1"),
    "RLD in P-MD ended": (
        add(60, "r1", Kind.RELAY_END, req=0, tokens=0, ids=0, cause="last"),
        "request 0 has a relay.end at r1",
    ),
    "no route": (drop("request.routed", 1), "request 1 was answered by r1 without a route"),
}

CACHE: dict[str, tuple[Change, str]] = {
    "a block leaks": (
        put("cache.matched", 3, "md1", size=21 * BLOCK_BYTES), "md1: 13,523,328 bytes in use"
    ),
    "a block is made up": (put("cache.published", 0, "p1", blocks=1), "p1: 6,439,680 bytes in use"),
    "a byte leaks": (put("cache.matched", 1, "p1", size=10 * BLOCK_BYTES + 1), "6,439,681 bytes"),
    "negative": (put("cache.matched", 0, "p1", size=-1), "p1: -1 bytes in use at 1000000 ns of"),
    "nothing evicted": (
        put("cache.published", 2, "md1", evicted=0, size=22 * BLOCK_BYTES),
        f"md1: {22 * BLOCK_BYTES:,} bytes in use at 240000000 ns of {BUDGET:,}",
    ),
    "evicted falls": (put("cache.published", 3, "p1", evicted=1), "evicted blocks fell to 1"),
    "matched more": (put("cache.matched", 0, "md1", blocks=9), "request 0 matched 9 of 8"),
    "matched less than none": (put("cache.matched", 0, "md1", blocks=-1), "matched -1 of 8"),
    "matched twice": (repeat("cache.matched", 0, "md1"), "request 0 was matched twice"),
    "never matched": (drop("cache.matched", 0, "md1"), "was published but never matched"),
    "published more": (put("cache.matched", 0, "p1", blocks=7), "published 2 blocks, it lacked 1"),
    "published twice": (
        add(45, "md1", Kind.CACHE_PUBLISHED, req=0, blocks=0, evicted=0),
        "request 0 was published twice",
    ),
    "before verified": (
        put("cache.published", 0, "md1", t=39 * MS), "published before its KV was there"
    ),
    "never verified": (drop("kv.verified", 0, "md1"), "published before its KV was there"),
    "before computed": (
        put("cache.published", 0, "p1", t=9 * MS), "p1: request 0 was published before its KV"
    ),
    "never computed": (drop("prefill.end", 0), "p1: request 0 was published before its KV"),
    "never begun": (drop("kv.begin", 0, "md1"), "published before its KV was begun"),
    "begun afterwards": (put("prefill.start", 0, t=11 * MS), "published before its KV was begun"),
    "reserved less": (
        put("cache.reserved", 0, blocks=1), "published 2 blocks, reserved were 1"
    ),
    "reservation refused": (put("cache.reserved", 0, reason="busy"), "reserved were 0"),
    "evicted unseen": (
        put("cache.reserved", 2, evicted=0), f"md1: {14 * BLOCK_BYTES:,} bytes in use at 201"
    ),
    "a lock leaks": (put("cache.closed", NOBODY, locks=1), "1 locks and 0 reservations left"),
    "room leaks": (put("cache.closed", NOBODY, reservations=2), "0 locks and 2 reservations left"),
    "blocks leak": (put("cache.closed", NOBODY, blocks=19), "bytes in use at its end for 19"),
    "bytes leak": (
        put("cache.closed", NOBODY, size=21 * BLOCK_BYTES, blocks=21),
        f"md1: {21 * BLOCK_BYTES:,} bytes in use at 900",
    ),
    "used after its end": (put("cache.closed", NOBODY, t=0), "closed at 0 ns, before its last use"),
    "no cache closed": (put("cache.closed", NOBODY, node="r1"), "r1: a cache.closed where no"),
    "no cache there": (put("cache.matched", 0, "md1", node="r1"), "r1: a cache.matched where no"),
}  # fmt: skip

CACHE["never closed"] = (drop("cache.closed", NOBODY, "p1"), "p1: was used and never closed")
ROUTE: dict[str, tuple[Change, str]] = {
    "never routed": (drop("request.routed", 0), "request 0 was routed 0 times"),
    "routed twice": (repeat("request.routed", 0), "request 0 was routed 2 times"),
    "by no router": (put("request.routed", 0, node="p1"), "by p1, which is no router"),
    "an unknown pipeline": (put("request.routed", 0, pipeline="P"), "request 0 goes P with"),
    "an RLD too many": (put("request.routed", 0, relay="r1"), "request 0 goes P-MD with RLD 'r1'"),
    "no RLD": (put("request.routed", 1, relay=""), "request 1 goes P-RLD-MD with RLD ''"),
    "no P": (put("request.routed", 0, prefill=""), "'', which is no prefill instance"),
    "not an MD": (put("request.routed", 0, decode="r1"), "'r1', which is no decode instance"),
    "not an RLD": (put("request.routed", 1, relay="md2"), "'md2', which is no relay instance"),
    "another P": (put("prefill.start", 0, node="p2"), "has a prefill.start at p2, off its route"),
    "another P ends": (put("prefill.end", 0, node="p2"), "has a prefill.end at p2, off its route"),
    "another P sends": (
        put("transfer.start", 0, node="p2"), "was sent by p2, it was routed to p1"
    ),
    "to another MD": (put("transfer.start", 0, peer="md2"), "was sent to md2, off its route"),
    "at another MD": (put("kv.begin", 0, node="md2"), "was sent to md2, off its route"),
    "verified elsewhere": (put("kv.verified", 1, node="r2"), "was sent to r2, off its route"),
    "to an RLD in P-MD": (
        add(20, "p1", Kind.TRANSFER_START, req=0, peer="r1", conn=1, blocks=8),
        "request 0 was sent to r1, off its route",
    ),
    "to nobody": (
        add(20, "p1", Kind.TRANSFER_START, req=0, peer="", conn=1, blocks=8),
        "request 0 was sent to , off its route",
    ),
    "a cache off the route": (
        put("cache.matched", 0, "md1", node="md2"), "cache.matched at md2, off its route"
    ),
    "all blocks to MD": (put("transfer.start", 0, blocks=8), "8 blocks for md1, due were 2"),
    "begun with less": (put("kv.begin", 0, blocks=1), "a kv.begin of 1 blocks for md1"),
    "verified with less": (put("kv.verified", 0, blocks=1), "a kv.verified of 1 blocks for md1"),
    "part to RLD": (put("transfer.start", 4, blocks=6), "6 blocks for r1, due were 8"),
    "KV from RLD": (
        lambda events: events.extend(transfer(153, 1, "md1", 2, 154, sender="r1")),
        "request 1 was sent by RLD without being asked",
    ),
    "MD never asked": (drop("cache.matched", 0, "md1"), "md1, whose cache was never asked"),
    "another prompt": (put("cache.matched", 3, "md1", of=9), "request 3 has 8 blocks, md1 saw 9"),
    "answered before verified": (
        put("kv.verified", 0, t=51 * MS), "answered by md1 before its KV was verified"
    ),
    "never verified": (drop("kv.verified", 4), "answered by r1 before its KV was verified"),
    "not cached after all": (
        put("cache.matched", 3, "md1", blocks=7), "request 3 was answered by md1 before its KV"
    ),
}  # fmt: skip

BROKEN = [
    pytest.param(check, change, words, id=f"{check.name}: {name}")
    for check, ways in (
        (AuthoritySingle(), AUTHORITY),
        (CacheConserved(), CACHE),
        (RouteKept(), ROUTE),
    )
    for name, (change, words) in ways.items()
]


def test_a_sound_run_passes(tmp_path: Path) -> None:
    case = plane_case(tmp_path, plane_events())
    others = (TokensOrdered(), TransfersVerified())
    findings = examine(case, (*PLANE, *others))
    assert [f.violations for f in findings if f.status is not Status.PASS] == []
    assert all(finding.decides for finding in findings)
    assert [finding.evidence for finding in findings[:5]] == [
        "5 routed (2 P-MD, 1 P-RLD, 2 P-RLD-MD), 6 transfers",
        "4 streams from one instance, 1 from RLD and then MD",
        "md1: peak 12.9 MB, 2 blocks evicted; p1: peak 12.9 MB, 8 blocks evicted",
        "md1: peak 19.4 MB of 38.8 MB; r1: peak 9.7 MB of 38.8 MB",
        "5 ids in 65 bytes",
    ]


@pytest.mark.parametrize(("check", "change", "words"), BROKEN)
def test_a_broken_claim_is_noticed(
    tmp_path: Path, check: Check, change: Change, words: str
) -> None:
    events = plane_events()
    change(events)
    finding = look(plane_case(tmp_path, events), check)
    assert finding.status is Status.FAIL
    assert any(words in violation for violation in finding.violations), finding.violations


@pytest.mark.parametrize("check", PLANE, ids=lambda check: check.name)
def test_a_run_without_a_serving_plane_passes(tmp_path: Path, check: Check) -> None:
    plan = plane_plan()
    agents = tuple(agent.model_copy(update={"serving": None}) for agent in plan.agents)
    events = plane_events()
    drop("request.routed", 0)(events)
    case = plane_case(tmp_path, events, plan.model_copy(update={"agents": agents}))
    finding = look(case, check)
    assert (finding.status, finding.evidence) == (Status.PASS, "no serving plane")


def test_md_may_answer_alone_where_rld_emitted_nothing(tmp_path: Path) -> None:
    events = plane_events()
    all_of(
        source(1, 0, "md1"), source(1, 1, "md1"),
        put("handoff.end", 1, position=0), put("relay.end", 1, tokens=0),
    )(events)  # fmt: skip
    assert look(plane_case(tmp_path, events), AuthoritySingle()).status is Status.PASS


def test_rld_sends_rows_of_its_tokens_where_md_asked_for_them(tmp_path: Path) -> None:
    events = plane_events()
    put("handoff.start", 1, mode="incremental-kv")(events)
    events.extend(transfer(153, 1, "md1", 2, 154, sender="r1"))
    findings = examine(plane_case(tmp_path, events), (*PLANE, TransfersVerified()))
    assert [f.violations for f in findings if f.status is not Status.PASS] == []


def test_lost_tokens_of_a_cancelled_rld_may_come_from_md(tmp_path: Path) -> None:
    events = plane_events()
    put("relay.end", 1, tokens=3, cause="cancelled")(events)
    assert look(plane_case(tmp_path, events), AuthoritySingle()).status is Status.PASS


def test_a_failed_request_needs_no_whole_handoff_but_sound_sources(tmp_path: Path) -> None:
    events = plane_events()
    put("request.done", 1, kind="request.failed", reason="relay-lost")(events)
    drop("relay.end", 1)(events)
    case = plane_case(tmp_path, events)
    assert look(case, AuthoritySingle()).status is Status.PASS
    source(1, 0, "md2")(events)
    assert look(plane_case(tmp_path, events), AuthoritySingle()).status is Status.FAIL


@pytest.mark.parametrize(("before_ms", "status"), [(9, Status.PASS), (11, Status.FAIL)])
def test_a_real_clock_goes_on_while_a_block_is_published(
    tmp_path: Path, before_ms: int, status: Status
) -> None:
    events = plane_events()
    put("cache.published", 0, "md1", t=(40 - before_ms) * MS)(events)
    assert look(plane_case(tmp_path, events, plane_plan("real")), CacheConserved()).status is status


def test_a_document_larger_than_a_cache_is_not_held(tmp_path: Path) -> None:
    events = [
        event(1, "md1", Kind.CACHE_MATCHED, 0, req=0, blocks=0, of=8),
        event(2, "md1", Kind.CACHE_PUBLISHED, 0, req=0, blocks=0, evicted=0),
        event(3, "md1", Kind.CACHE_CLOSED, 0, blocks=0, locks=0, reservations=0),
    ]
    plan = plane_plan(budget=7 * BLOCK_BYTES)
    assert look(plane_case(tmp_path, events, plan), CacheConserved()).status is Status.PASS


def test_documents_that_push_each_other_out_are_counted(tmp_path: Path) -> None:
    plan = plane_plan(budget=12 * BLOCK_BYTES)
    serving = plan.agents[0].serving
    assert serving is not None
    both = serving.model_copy(update={"documents": ((0, 1024), (1, 1024))})
    agents = tuple(agent.model_copy(update={"serving": both}) for agent in plan.agents)
    held = 12 * BLOCK_BYTES
    events = [
        event(1, "md1", Kind.CACHE_MATCHED, held, req=0, blocks=8, of=8),
        event(2, "md1", Kind.CACHE_CLOSED, held, blocks=12, locks=0, reservations=0),
    ]
    case = plane_case(tmp_path, events, plan.model_copy(update={"agents": agents}))
    finding = look(case, CacheConserved())
    assert (finding.status, finding.evidence) == (
        Status.PASS, "md1: peak 7.7 MB, 4 blocks evicted"
    )  # fmt: skip


def test_a_hit_at_p_does_not_excuse_a_missing_transfer(tmp_path: Path) -> None:
    events = plane_events()
    put("cache.matched", 3, "md1", blocks=6)(events)
    finding = look(plane_case(tmp_path, events), TransfersVerified())
    assert finding.violations == ("request 3 was answered without an acknowledged transfer",)


def test_a_cache_asked_before_the_barrier_is_noticed(tmp_path: Path) -> None:
    events = plane_events()
    events += [event(0, agent.node, Kind.BARRIER) for agent in plane_plan().agents]
    assert look(plane_case(tmp_path, events), BarrierPassed()).status is Status.PASS
    put("cache.matched", 0, "md1", t=-1)(events)
    finding = look(plane_case(tmp_path, events), BarrierPassed())
    assert "traffic began 1 ns before the barrier" in finding.violations


def test_where_md_had_all_a_refusal_at_rld_takes_nothing_from_the_answer(tmp_path: Path) -> None:
    refused = [
        event(310, "p1", Kind.TRANSFER_START, BLOCK_BYTES, req=3, peer="r1", conn=0, blocks=1),
        event(310, "r1", Kind.KV_BEGIN, BLOCK_BYTES, req=3, peer="p1", conn=0, blocks=1),
        event(311, "r1", Kind.KV_REFUSED, req=3, reason="refused: the request has ended"),
        event(312, "p1", Kind.TRANSFER_FAILED, req=3, peer="r1", conn=0, reason="refused"),
    ]
    case = plane_case(tmp_path, [*plane_events(), *refused])
    assert look(case, TransfersVerified()).violations == ()
