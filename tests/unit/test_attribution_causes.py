"""Each cause of a delay, alone, in a made-up history: the search names it, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.contract.event import Kind
from testbed.contract.fault import AddedDelay, AddedLoss, SlowRate
from testbed.contract.link import RandomLoss
from testbed.metrics.attribution.record import Delay
from tests.fakes.delayed_run import (
    asked,
    explained,
    in_force,
    landed,
    on_link,
    pausing,
    sampled,
    sent,
    stalling,
    steady,
    tokens,
)
from tests.fakes.hand_run import Told, told

pytestmark = pytest.mark.unit

RELAYED = tokens(0, "r1", 0, *steady(1_200, 8))
"""RLD's tokens up to 1.34 s; MD's come when its KV is there."""


def handed_over(over: float) -> list[Told]:
    return tokens(0, "md1", 8, *steady(over, 8))


def stall(tmp_path: Path, events: list[Told], *faults: object) -> Delay:
    (one,) = explained(tmp_path / "run", events, *faults).stalls  # type: ignore[arg-type]
    assert sum(one.waits.values()) == pytest.approx(one.length_s)
    known = sum(share.seconds for share in one.shares)
    assert known + one.unexplained_s == pytest.approx(one.length_s)
    return one


def story(queued: float, acquired: float, acked: float, retrans: int = 0) -> list[Told]:
    """Request 0: its KV reaches MD at ``acked``, its first token of MD the client 60 ms later."""
    return [
        *asked(0, 1_000, 1_150), *RELAYED, *sent(0, queued, acquired, acked, 0, retrans=retrans),
        *landed(0, acked + 10, acked + 20, acked + 50), *handed_over(acked + 60),
    ]  # fmt: skip


def test_nothing_is_late_in_a_steady_run(tmp_path: Path) -> None:
    events = [*asked(0, 1_000, 1_150), *RELAYED, *tokens(0, "md1", 8, *steady(1_360, 8))]
    found = explained(tmp_path / "run", events)
    assert (found.stalls, found.first_tokens, found.transfers) == ((), (), ())
    assert found.causes.stalls.count == 0


@pytest.mark.parametrize("conn", range(8))
def test_a_leg_that_went_down_is_named_with_its_fault(tmp_path: Path, conn: int) -> None:
    """Of two faults at one time, one a leg, only that of the connection's own leg counts."""
    events = [
        *asked(0, 1_000, 1_150), *RELAYED, *sent(0, 1_150, 1_150, 2_000, conn, retrans=38),
        *landed(0, 2_010, 2_020, 2_050), *handed_over(2_060),
        *in_force("cut-1", "wan1", 1_200, 1_800), *in_force("cut-2", "wan2", 1_200, 1_800),
    ]  # fmt: skip
    one = stall(tmp_path, events, on_link("cut-1"), on_link("cut-2", link="wan2"))
    assert one.root == "fault"
    leg = next(link for link in one.chain if link.kind == "leg").subject
    assert (one.fault, leg.split()[0]) in (("cut-1", "wan1"), ("cut-2", "wan2"))
    kinds = [link.kind for link in one.chain]
    assert kinds == ["wait", "transfer", "connection", "leg", "fault"]
    assert "38 segments sent again" in one.chain[1].evidence
    assert one.chain[2].subject == f"p1->md1 {conn}"


def test_both_legs_are_taken(tmp_path: Path) -> None:
    legs = set()
    for conn in range(8):
        events = [
            *asked(0, 1_000, 1_150), *RELAYED, *sent(0, 1_150, 1_150, 2_000, conn, retrans=1),
            *handed_over(2_060), *in_force("cut", "wan1", 1_200, 1_800),
        ]  # fmt: skip
        folder = tmp_path / str(conn)
        (one,) = explained(folder, events, on_link("cut")).stalls
        legs.add(one.root == "fault")
    assert legs == {True, False}


def test_after_an_outage_its_recovery_belongs_to_it(tmp_path: Path) -> None:
    both = (on_link("cut-1"), on_link("cut-2", link="wan2"))
    force = [*in_force("cut-1", "wan1", 1_100, 1_500), *in_force("cut-2", "wan2", 1_100, 1_500)]
    one = stall(tmp_path, [*story(1_150, 1_150, 2_000, retrans=5), *force], *both)
    assert one.shares[0].seconds == pytest.approx(0.66, abs=0.01)  # from 1.34 s to 2.0 s


def test_loss_in_force_explains_nothing_where_nothing_was_sent_again(tmp_path: Path) -> None:
    lossy = AddedLoss(loss=RandomLoss(share=0.05))
    both = (on_link("loss-1", lossy), on_link("loss-2", lossy, "wan2"))
    force = [*in_force("loss-1", "wan1", 1_100, 2_500), *in_force("loss-2", "wan2", 1_100, 2_500)]
    spared = stall(tmp_path / "a", [*story(1_150, 1_150, 2_000), *force], *both)
    assert spared.root != "fault"
    hit = stall(tmp_path / "b", [*story(1_150, 1_150, 2_000, retrans=9), *force], *both)
    assert (hit.root, hit.fault[:4]) == ("fault", "loss")


def test_added_delay_explains_no_more_than_its_round_trips(tmp_path: Path) -> None:
    little = AddedDelay(delay_ns=1_000_000)
    both = (on_link("late-1", little), on_link("late-2", little, "wan2"))
    force = [*in_force("late-1", "wan1", 1_100, 2_500), *in_force("late-2", "wan2", 1_100, 2_500)]
    one = stall(tmp_path, [*story(1_150, 1_150, 2_000), *force], *both)
    assert one.root == "unexplained"
    known = [share.seconds for share in one.shares if share.cause == "fault"]
    assert sum(known) == pytest.approx(0.022, abs=0.006)  # 16 round trips, a few of messages


def test_a_slower_rate_is_named(tmp_path: Path) -> None:
    both = (
        on_link("slow-1", SlowRate(rate_bps=10**6)),
        on_link("slow-2", SlowRate(rate_bps=10**6), "wan2"),
    )
    force = [*in_force("slow-1", "wan1", 1_100, 2_500), *in_force("slow-2", "wan2", 1_100, 2_500)]
    one = stall(tmp_path, [*story(1_150, 1_150, 2_000), *force], *both)
    assert (one.root, one.fault[:4]) == ("fault", "slow")


def test_a_receiver_that_reads_nothing_is_named(tmp_path: Path) -> None:
    events = [*story(1_150, 1_150, 2_000), *in_force("deaf", "md1", 1_200, 1_900)]
    one = stall(tmp_path, events, stalling("deaf", "md1"))
    assert (one.root, one.fault, one.subject) == ("fault", "deaf", "md1")


def test_loss_without_a_fault_is_named_with_its_leg(tmp_path: Path) -> None:
    samples = [
        sampled(link, ms, drops=3) for link in ("wan1", "wan2") for ms in (1_400, 1_600, 1_800)
    ]
    one = stall(tmp_path, [*story(1_150, 1_150, 2_000, retrans=9), *samples])
    assert one.root == "loss"
    assert "packets dropped by its queue" in one.chain[-1].evidence


def test_others_on_the_leg_are_named(tmp_path: Path) -> None:
    samples = [
        sampled(link, ms, size=1_000_000)
        for link in ("wan1", "wan2") for ms in range(1_200, 2_100, 100)
    ]  # fmt: skip
    others = [told_ for conn in range(1, 8) for told_ in sent(1, 1_150, 1_150, 2_100, conn)]
    one = stall(tmp_path, [*story(1_150, 1_150, 2_000), *samples, *others])
    assert one.root == "congestion"
    assert "other transfer" in one.chain[-1].evidence


def test_a_small_window_is_named(tmp_path: Path) -> None:
    small = [*asked(0, 1_000, 1_150), *RELAYED, *handed_over(2_060)]
    small += [*sent(0, 1_150, 1_150, 2_000, cwnd=10), *landed(0, 2_010, 2_020, 2_050)]
    assert stall(tmp_path, small).root == "window"


def test_a_pool_that_is_too_small_is_named(tmp_path: Path) -> None:
    others = [event for n in (1, 2) for event in sent(n, 1_150, 1_150, 1_880)]
    one = stall(tmp_path, [*story(1_150, 1_900, 2_000), *others])
    assert (one.root, one.subject) == ("pool", "p1->md1")
    assert one.waits["pool"] == pytest.approx(0.56)
    assert one.chain[0].subject == "pool at p1->md1"


def test_a_pool_whose_holder_recovers_from_an_outage_leads_to_the_outage(tmp_path: Path) -> None:
    both = (on_link("cut-1"), on_link("cut-2", link="wan2"))
    force = [*in_force("cut-1", "wan1", 1_200, 1_500), *in_force("cut-2", "wan2", 1_200, 1_500)]
    holder = sent(1, 1_150, 1_150, 1_880, 3, retrans=38)
    one = stall(tmp_path, [*story(1_150, 1_900, 2_000), *holder, *force], *both)
    assert one.root == "fault"
    assert one.chain[0].subject == "pool at p1->md1"
    assert one.chain[1].subject == "request 1 p1->md1"
    assert "38 segments" in one.chain[1].evidence


@pytest.mark.parametrize(
    ("events", "root"),
    [
        (landed(0, 1_900, 1_920, 1_950), "memory"),
        (landed(0, 1_320, 1_900, 1_950), "device"),
        (landed(0, 1_320, 1_330, 1_950), "handoff"),
    ],
    ids=["no room on the device", "a long copy", "much to catch up with"],
)
def test_what_md_waits_for_is_named(tmp_path: Path, events: list[Told], root: str) -> None:
    before = [*asked(0, 1_000, 1_150), *RELAYED, *sent(0, 1_150, 1_150, 1_300)]
    one = stall(tmp_path, [*before, *events, *handed_over(1_960)])
    assert (one.root, one.subject) == (root, "md1")


def test_a_paused_source_is_named(tmp_path: Path) -> None:
    times = (*steady(1_360, 5), *steady(2_000, 5))
    events = [*asked(0, 1_000, 1_150), *RELAYED, *tokens(0, "md1", 8, *times)]
    events += in_force("gc", "md1", 1_450, 1_990)
    one = stall(tmp_path, events, pausing("gc", "md1"))
    assert (one.root, one.fault, one.subject) == ("fault", "gc", "md1")
    assert one.waits == {"decode": pytest.approx(one.length_s)}


def test_tokens_that_come_together_were_not_delivered(tmp_path: Path) -> None:
    late = [1_900.0 + n / 10 for n in range(20)]
    events = [*asked(0, 1_000, 1_150), *RELAYED]
    events += tokens(0, "md1", 8, *steady(1_360, 5), *late, *steady(1_920, 30))
    events += in_force("cut", "wan1", 1_450, 1_700)
    one = stall(tmp_path, events, on_link("cut"))
    assert one.waits == {"delivery": pytest.approx(one.length_s)}
    assert (one.root, one.fault) == ("fault", "cut")


def test_a_preempted_sequence_waits_for_memory(tmp_path: Path) -> None:
    times = (*steady(1_360, 5), *steady(2_000, 5))
    events = [*asked(0, 1_000, 1_150), *RELAYED, *tokens(0, "md1", 8, *times)]
    events.append(told(1_450, "md1", Kind.SEQUENCE_PREEMPTED, req=0, tokens=9))
    events.append(told(1_980, "md1", Kind.SEQUENCE_ADMITTED, req=0))
    assert stall(tmp_path, events).root == "memory"


def test_a_step_that_held_all_up_is_told_from_one_answer_that_stood_still(tmp_path: Path) -> None:
    times = (*steady(1_360, 5), *steady(2_000, 5))
    events = [*asked(0, 1_000, 1_150), *RELAYED, *tokens(0, "md1", 8, *times)]
    silent = [*events, *tokens(1, "md1", 0, *times)]
    assert explained(tmp_path / "all", silent).causes.stalls.by_cause == {"decode": 2}
    alone = [*events, *tokens(1, "md1", 0, *steady(1_360, 40))]
    assert explained(tmp_path / "one", alone).causes.stalls.by_cause == {"unexplained": 1}


def test_a_late_first_token_has_its_queue_at_p(tmp_path: Path) -> None:
    events: list[Told] = []
    for req in range(3):
        events += [*asked(req, 1_000, 1_150), *tokens(req, "r1", 0, *steady(1_200, 3))]
    events += [*asked(3, 1_000, 2_500, 2_400), *tokens(3, "r1", 0, *steady(2_550, 3))]
    found = explained(tmp_path / "run", events)
    (one,) = found.first_tokens
    assert (one.req, one.root, one.subject) == (3, "prefill-queue", "p1")
    assert found.causes.first_tokens.by_cause == {"prefill-queue": 1}


def test_a_slow_transfer_has_the_same_chain(tmp_path: Path) -> None:
    both = (on_link("cut-1"), on_link("cut-2", link="wan2"))
    force = [*in_force("cut-1", "wan1", 1_200, 1_500), *in_force("cut-2", "wan2", 1_200, 1_500)]
    found = explained(tmp_path / "run", [*sent(0, 1_150, 1_150, 2_000, retrans=4), *force], *both)
    (one,) = found.transfers
    assert (one.what, one.root, one.source) == ("transfer", "fault", "p1->md1")
    assert [link.kind for link in one.chain][-1] == "fault"


def test_what_no_event_explains_is_unexplained(tmp_path: Path) -> None:
    one = stall(tmp_path, story(1_150, 1_150, 2_500))
    assert one.root == "unexplained"
    assert one.unexplained_s > 0.5 * one.length_s
    assert one.chain[0].kind == "wait"


def test_a_fault_that_never_came_explains_nothing(tmp_path: Path) -> None:
    one = stall(tmp_path, story(1_150, 1_150, 2_500, retrans=3), on_link("cut"))
    assert one.fault == ""


def test_a_transfer_that_began_after_an_outage_is_not_held_against_it(tmp_path: Path) -> None:
    both = (on_link("cut-1"), on_link("cut-2", link="wan2"))
    force = [*in_force("cut-1", "wan1", 1_000, 1_100), *in_force("cut-2", "wan2", 1_000, 1_100)]
    one = stall(tmp_path, [*story(1_150, 1_150, 2_000, retrans=5), *force], *both)
    assert one.fault == ""
