"""P: what it is told to give up it gives back, wherever it is; nothing leaks, nothing twice."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.event import Kind
from testbed_agents.control.plane import Lost
from testbed_agents.handoff.message import Cancel, Failure
from tests.fakes.prefill_stage import Stage, play


def failures(stage: Stage, name: str) -> list[Failure]:
    return [m for m in stage.post.to(name) if isinstance(m, Failure)]


def test_what_waits_in_the_queue_is_dropped() -> None:
    async def scene(stage: Stage) -> None:
        for req in (1, 2, 3):
            stage.assign(req, segment=req, blocks=8)
            stage.matched(req)
        await stage.after_ms(1)
        stage.post.say("rt1", Cancel(3))
        await stage.after_ms(200)

    stage = play(scene)
    assert [event["req"] for event in stage.events(Kind.PREFILL_END)] == [1, 2]
    assert failures(stage, "md1") == [Failure(3, "cancelled")]
    assert sorted(stage.notes("served")) == [1, 2, 3]


def test_transfers_under_way_are_cut() -> None:
    async def scene(stage: Stage) -> None:
        stage.assign(1)
        stage.matched(1)
        await stage.after_ms(15)
        assert stage.lines["md1"].under_way == stage.lines["r1"].under_way == 1
        stage.post.say("rt1", Cancel(1))
        await stage.after_ms(1)
        assert stage.lines["md1"].under_way == stage.lines["r1"].under_way == 0

    stage = play(scene)
    assert stage.lines["md1"].sent == stage.lines["r1"].sent == []
    assert failures(stage, "md1") == [Failure(1, "cancelled")]
    assert stage.notes("served") == [1]


def test_a_cancel_behind_the_last_acknowledgement_changes_nothing() -> None:
    async def scene(stage: Stage) -> None:
        stage.assign(1)
        stage.matched(1)
        await stage.after_ms(100)
        stage.post.say("rt1", Cancel(1))
        await stage.after_ms(1)

    stage = play(scene)
    assert failures(stage, "md1") == []
    assert stage.notes("served") == [1]


def test_a_lost_relay_leaves_the_other_path_alone() -> None:
    async def scene(stage: Stage) -> None:
        stage.assign(1)
        stage.matched(1)
        await stage.after_ms(15)
        stage.post.say("rt1", Lost("r1"))
        await stage.after_ms(100)

    stage = play(scene)
    assert stage.lines["r1"].closed
    assert stage.lines["md1"].sent == [1]
    assert failures(stage, "md1") == failures(stage, "r1") == []


def test_nobody_waits_for_the_match_of_a_lost_main() -> None:
    async def scene(stage: Stage) -> None:
        stage.assign(1)
        await stage.after_ms(12)
        stage.post.say("rt1", Lost("md1"))
        await stage.after_ms(30)
        assert stage.notes("served") == [1]

    assert play(scene).lines["r1"].sent == [1]


def test_a_match_that_comes_behind_the_end_is_not_kept() -> None:
    async def scene(stage: Stage) -> None:
        stage.assign(1)
        await stage.after_ms(1)
        stage.post.say("rt1", Cancel(1))
        await stage.after_ms(1)
        stage.matched(1)
        await stage.after_ms(1)

    assert play(scene).notes("served") == [1]


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["assign", "matched", "cancel", "break", "mend", "lose"]),
        st.integers(0, 5),
        st.integers(0, 25),
    ),
    max_size=25,
)


@given(acts=ACTS, cache_blocks=st.integers(0, 12))
@settings(max_examples=60, deadline=None)
def test_nothing_leaks_whatever_the_order(
    acts: list[tuple[str, int, int]], cache_blocks: int
) -> None:
    async def scene(stage: Stage) -> None:
        for act, req, ms in acts:
            line = stage.lines[("r1", "md1")[req % 2]]
            match act:
                case "assign" if req not in stage.assigned:
                    stage.assign(
                        req, blocks=1 + req, segment=req % 3, relay="r1" if req % 2 else ""
                    )
                case "matched":
                    stage.matched(req, req // 2)
                case "cancel":
                    stage.post.say("rt1", Cancel(req))
                case "break" | "mend":
                    line.broken = act == "break"
                case "lose":
                    stage.post.say("rt1", Lost(("r1", "md1")[req % 2]))
            await stage.after_ms(ms)
        await stage.after_ms(2_000)

    stage = play(scene, cache_blocks)  # an open lock or a second release is an error there
    assert sorted(stage.notes("served")) == sorted(stage.assigned)
    stage.nothing_is_left()
    assert all(line.under_way == 0 for line in stage.lines.values())
