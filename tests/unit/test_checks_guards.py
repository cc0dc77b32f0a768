"""Checks of pages, waits, retries and bytes: each names what it has to, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.checks import CHECKS, Case, read_case
from testbed.checks.check import Check
from testbed.checks.pages import PageStep
from testbed.checks.pages_owned import PagesOwned
from testbed.checks.pool_kept import PoolBounded
from testbed.checks.retries_bounded import RetriesBounded
from testbed.checks.step import Step
from testbed.checks.transfers_verified import TransfersVerified
from testbed.checks.waits_bounded import WaitsBounded
from testbed.contract.defect import NOTICED_BY, Defect
from testbed.contract.event import Kind
from testbed.contract.fault import NodeFault, Span
from testbed.contract.guard import Guard
from tests.fakes.fake_run import FakeRun
from tests.fakes.run_folder import write_run_folder

SMALL = FakeRun(rate=20, warm_up_s=1, measure_s=3, drain_s=30, pool=4, load=0.5)
SECOND, MS = 10**9, 10**6


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return read_case(write_run_folder(tmp_path / "run", SMALL))


def with_guard(case: Case, guard: Guard, timeout_ns: int = 300 * SECOND) -> Case:
    agents = tuple(
        agent.model_copy(
            update={
                "guard": guard,
                "pool": agent.pool.model_copy(update={"transfer_timeout_ns": timeout_ns}),
            }
        )
        for agent in case.plan.agents
    )
    return replace(case, plan=case.plan.model_copy(update={"agents": agents}))


def found_by(check: Check, case: Case) -> tuple[str, ...]:
    return check.examine(case).violations


def page(t: int, kind: Kind, req: int, pages: int, epoch: int = 0, **more: object) -> PageStep:
    return replace(PageStep(t, "md1", t, kind, req, epoch, pages), **more)


def taken(t: int, req: int, pages: int = 4, epoch: int = 0) -> PageStep:
    return page(t, Kind.PAGES_TAKEN, req, pages, epoch)


def freed(
    t: int, req: int, pages: int = 4, epoch: int = 0, reason: str = "applied", writers: int = 0
) -> PageStep:
    return page(t, Kind.PAGES_FREED, req, pages, epoch, reason=reason, writers=writers)


def paged(case: Case, steps: Iterable[PageStep], pages: int = 8) -> Case:
    guarded = with_guard(case, Guard(pages=pages))
    guarded.history.pages.extend(steps)
    return guarded


def test_every_protection_is_missed_by_a_check_that_there_is_or_by_figures() -> None:
    figures = {Defect.LEG_FAILOVER, Defect.RELAY_STAY, Defect.PAIR_RECOVERY}
    assert set(NOTICED_BY) == set(Defect) - figures
    assert set(NOTICED_BY.values()) <= {check.name for check in CHECKS}


def test_pages_that_come_back_are_sound(case: Case) -> None:
    sound = [taken(1, 1), taken(2, 2), freed(3, 1), taken(4, 1, epoch=1), freed(5, 1, epoch=1)]
    assert found_by(PagesOwned(), paged(case, [*sound, freed(6, 2)])) == ()


def test_without_pages_there_is_nothing_to_say(case: Case) -> None:
    assert "not applicable" in PagesOwned().examine(case).evidence


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([taken(1, 1), freed(2, 1, reason="aborted", writers=1)],
         "request 1 gave 4 pages back (aborted) while 1 connection(s) could still write them"),
        ([taken(1, 1), freed(2, 1), taken(3, 2),
          page(4, Kind.PAGE_OVERWRITTEN, 2, 7, reason="given-up", by=1), freed(5, 2)],
         "a late write of request 1, whose pages were freed (given-up), landed in page 7 of "
         "request 2"),
        ([taken(1, 1)], "request 1 never gave its 4 pages back at md1"),
        ([taken(1, 1), taken(2, 2), taken(3, 3), freed(4, 1), freed(5, 2), freed(6, 3)],
         "12 pages were taken at md1 at once"),
        ([taken(1, 1), freed(2, 1), freed(3, 1)], "request 1 freed pages at md1 that it had not"),
    ],
)  # fmt: skip
def test_each_misuse_of_a_page_is_named(case: Case, steps: list[PageStep], words: str) -> None:
    assert found_by(PagesOwned(), paged(case, steps)) == (words,)


def test_a_lost_receiver_gives_nothing_back(case: Case) -> None:
    lost = paged(case, [taken(1, 1)])
    lost.history.lost.add("md1")
    assert found_by(PagesOwned(), lost) == ()


def first(case: Case, kind: Kind) -> int:
    return next(i for i, step in enumerate(case.history.steps) if step.kind is kind)


def test_a_transfer_beyond_its_deadline_is_named(case: Case) -> None:
    assert found_by(WaitsBounded(), case) == ()
    slow = max(step.duration_ns for step in case.history.of(Kind.TRANSFER_ACKED))
    short = with_guard(case, Guard(), timeout_ns=slow - 20 * MS)
    assert any("its deadline was" in words for words in found_by(WaitsBounded(), short))


def test_one_that_never_ends_is_measured_to_the_end_of_the_record(case: Case) -> None:
    req = case.history.steps[first(case, Kind.TRANSFER_ACKED)].req
    case.history.steps[:] = [
        step for step in case.history.steps if (step.kind, step.req) != (Kind.TRANSFER_ACKED, req)
    ]
    guarded = with_guard(case, Guard(), timeout_ns=3 * SECOND)
    (words,) = found_by(WaitsBounded(), guarded)
    assert f"the transfer of request {req} from p1 to md1 had not ended after" in words
    guarded.history.lost.add("p1")
    assert found_by(WaitsBounded(), guarded) == ()


def test_pages_may_be_held_for_twice_as_long(case: Case) -> None:
    held = [taken(0, 1), freed(2 * SECOND, 1), taken(0, 2), freed(2 * SECOND + 20 * MS, 2)]
    guarded = with_guard(case, Guard(pages=9), timeout_ns=SECOND)
    guarded.history.steps.clear()
    guarded.history.pages.extend(held)
    assert len(found_by(WaitsBounded(), guarded)) == 1


def test_a_node_that_stood_still_has_that_time_more(case: Case) -> None:
    held = [taken(0, 1), freed(4 * SECOND, 1)]
    guarded = with_guard(case, Guard(pages=9), timeout_ns=SECOND)
    guarded.history.steps.clear()
    guarded.history.pages.extend(held)
    assert len(found_by(WaitsBounded(), guarded)) == 1
    pause = NodeFault(
        name="pause-1", spans=(Span(begin_ns=0, end_ns=2 * SECOND),), nodes=("md1",), act="pause"
    )
    still = guarded.plan.model_copy(update={"faults": (pause,)})
    assert found_by(WaitsBounded(), replace(guarded, plan=still)) == ()


def attempt(
    t: int, turns: int = 1, failed_at: int | None = None, why: str = "timeout: late"
) -> list[Step]:
    start = Step(t, "p1", t, Kind.TRANSFER_START, 9_999, 10, "md1", blocks=8, turns=turns)
    if failed_at is None:
        return [start]
    return [
        start,
        Step(failed_at, "p1", failed_at, Kind.TRANSFER_FAILED, 9_999, 0, "md1", reason=why),
    ]


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([*attempt(0, 1, SECOND), *attempt(2 * SECOND, 2)], None),
        ([*attempt(0, 1, SECOND, "connection-lost: x"), *attempt(2 * SECOND)], None),
        ([*attempt(0, 1, SECOND), *attempt(2 * SECOND)],
         "what took too long in 1 part(s) was sent again as it was"),
        ([*attempt(0, 1, SECOND, "full: x"), *attempt(SECOND + 50 * MS)],
         "tried again after 50.000 ms, the pause is 100 ms"),
        ([*attempt(0, 1, SECOND, "full: x"), *attempt(2 * SECOND, 1, 3 * SECOND, "full: x"),
          *attempt(4 * SECOND, 1, 5 * SECOND, "full: x"), *attempt(6 * SECOND)],
         "4 attempts, the budget is 3"),
        ([*attempt(0, 1, 1, "stalled: x"), *attempt(1, 1, 2, "stalled: x"),
          *attempt(2, 1, 3, "stalled: x"), *attempt(3, 1, SECOND, "full: x"),
          *attempt(2 * SECOND, 1, 3 * SECOND, "full: x"), *attempt(4 * SECOND)], None),
        ([step for t in range(5) for step in attempt(t, 1, t + 1, "stalled: x")],
         "tried again after 0.000 ms, the pause is 100 ms"),
    ],
)  # fmt: skip
def test_each_misuse_of_a_retry_is_named(case: Case, steps: list[Step], words: str | None) -> None:
    guarded = with_guard(case, Guard(retries=2))
    guarded.history.steps.extend(steps)
    found = found_by(RetriesBounded(), guarded)
    assert found == (() if words is None else (f"request 9999 from p1 to md1: {words}",))


def test_a_peer_that_failed_for_good_is_named(case: Case) -> None:
    case.history.steps.append(
        Step(1, "p1", 1, Kind.POOL_REFUSED, 3, peer="md1", reason="peer-failed")
    )
    assert "p1 took md1 to have failed for good" in found_by(RetriesBounded(), case)[0]


def test_what_was_let_pass_is_named(case: Case) -> None:
    place = first(case, Kind.KV_VERIFIED)
    case.history.steps[place] = replace(case.history.steps[place], unequal=2, missing=1)
    req = case.history.steps[place].req
    assert found_by(TransfersVerified(), case) == (
        f"request {req} was verified with 2 block(s) that are not what was sent",
        f"request {req} was verified with 1 block(s) that never came",
    )


def test_bytes_beyond_the_bound_of_a_pair_are_named(case: Case) -> None:
    queued = [i for i, s in enumerate(case.history.steps) if s.kind is Kind.POOL_QUEUED]
    for place in queued:
        case.history.steps[place] = replace(case.history.steps[place], size=10)
    assert found_by(PoolBounded(), with_guard(case, Guard(queue_bytes=10_000))) == ()
    (words,) = found_by(PoolBounded(), with_guard(case, Guard(queue_bytes=11)))
    assert "bytes were admitted, the bound is 11" in words
