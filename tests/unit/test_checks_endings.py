"""Failed requests are counted beside the checks, with their reasons."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from testbed.checks.case import Case
from testbed.checks.endings import SHOWN_MAX, Endings, endings
from testbed.checks.finding import Finding, Status
from testbed.checks.history import History, Story
from testbed.checks.verdict import conclude
from tests.fakes.plane_run import plane_plan, plane_requests

PASSED = (Finding(check="a", claim="It holds.", status=Status.PASS, evidence="seen"),)


def case_of(stories: dict[int, Story], closed: bool = False) -> Case:
    plan = plane_plan()
    agents = tuple(
        agent.model_copy(update={"closed_loop": 2 if closed else None}) for agent in plan.agents
    )
    requests = {request.id: request for request in plane_requests()}
    return Case(plan.model_copy(update={"agents": agents}), requests, History(stories=stories))


def test_all_checks_may_pass_while_most_requests_fail() -> None:
    failed = Endings(asked=16, failed=14, reasons={"deadline": 14})
    verdict = conclude(PASSED, None, failed)
    assert verdict.in_words() == "All 1 checks pass; 14 of 16 requests failed: deadline 14."
    assert conclude(PASSED, None).in_words() == "All 1 checks pass."


def test_a_request_counts_once_by_its_first_reason() -> None:
    twice = Story(sent_ns=[0], failed=[(5, "deadline"), (6, "late")])
    found = endings(case_of({0: twice, 1: Story(sent_ns=[0], done=[(9, (1,))])}))
    assert found == Endings(asked=5, failed=1, reasons={"deadline": 1})


def test_a_closed_loop_asked_only_what_was_sent() -> None:
    assert endings(case_of({0: Story(sent_ns=[0], failed=[(5, "deadline")])}, True)).asked == 1


@given(st.lists(st.sampled_from([f"reason-{i}" for i in range(9)]), max_size=40))
def test_no_failure_is_left_out_of_the_words(reasons: list[str]) -> None:
    counts = Counter(reasons)
    words = Endings(asked=50, failed=len(reasons), reasons=dict(counts)).in_words()
    if not reasons:
        assert words == ""
        return
    head, _, listed = words.partition(": ")
    assert head == f"{len(reasons)} of 50 requests failed"
    told = [int(part.rsplit(" ", 1)[1]) for part in listed.split(", ")]
    assert sum(told) == len(reasons)
    assert len(told) <= SHOWN_MAX + 1
