"""RLD[0:k] + MD[k:] is one engine's answer: every split, every mode, any order of events."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.agent import ModelConfig
from testbed.contract.handoff import HandoffMode, Occupancy
from testbed_agents.handoff.message import Peer
from testbed_agents.model.load import load_model
from testbed_agents.model.prompt import prompt
from tests.fakes.handoff_world import RealSequence, Sequence, SumSequence, World, reference

MODES = (HandoffMode.CATCH_UP, HandoffMode.ONE_SHOT, HandoffMode.INCREMENTAL_KV)
MOST = 14
MODEL = load_model(ModelConfig(name="nano"))
PROMPT = prompt(5, 5, 16, 24)
REAL = RealSequence(MODEL, MODEL.prefill(PROMPT[:-1]), 5)
CHEAP = SumSequence((3, 1, 4, 1, 5))


def whole(sequence: Sequence, stop: frozenset[int] = frozenset()) -> tuple[int, ...]:
    return reference(sequence, PROMPT[-1], MOST, stop)


REAL_ANSWER, CHEAP_ANSWER = whole(REAL), whole(CHEAP)


def complete(world: World, expected: tuple[int, ...]) -> None:
    """What holds at the end of every run without a death."""
    assert world.client.outcome == "done"
    assert tuple(one.token for one in world.seen) == expected
    assert [one.position for one in world.seen] == list(range(len(expected)))
    assert all(len(by) == 1 for by in world.emitters.values()), "two authors of one position"
    assert world.client.fenced == 0
    assert world.released == {Peer.RELAY: 1, Peer.MAIN: 1}
    assert world.published == 1
    assert world.relay_kv is None
    assert world.main_kv is None


def relay_reaches(world: World, tokens: int) -> None:
    while world.relay.emitted < tokens and not world.relay.ended:
        world.relay_step()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("split", range(MOST + 1))
def test_every_split_point_equals_one_engine(mode: HandoffMode, split: int) -> None:
    world = World(REAL, PROMPT[-1], MOST, mode)
    relay_reaches(world, split)
    world.drain()
    complete(world, REAL_ANSWER)


@pytest.mark.parametrize("split", range(1, MOST))
def test_one_shot_extends_all_eager_tokens_in_one_step(split: int) -> None:
    world = World(CHEAP, PROMPT[-1], MOST, HandoffMode.ONE_SHOT)
    relay_reaches(world, split)
    world.kv_comes()
    world.deliver((Peer.MAIN, Peer.RELAY))
    assert world.relay.emitted == split
    assert world.released[Peer.RELAY] == 1
    world.drain()
    assert world.extended[0] == split + 1
    assert all(width == 1 for width in world.extended[1:])
    complete(world, CHEAP_ANSWER)


def test_an_increment_spares_the_extend_decode() -> None:
    world = World(CHEAP, PROMPT[-1], MOST, HandoffMode.INCREMENTAL_KV)
    relay_reaches(world, 8)
    world.drain()
    assert set(world.extended) == {1}
    assert len(world.extended) < MOST
    complete(world, CHEAP_ANSWER)


def test_catching_up_takes_wide_steps_first_and_relay_goes_on_meanwhile() -> None:
    world = World(CHEAP, PROMPT[-1], MOST, HandoffMode.CATCH_UP)
    relay_reaches(world, 6)
    world.drain()
    assert world.extended[0] > 1
    assert world.relay.emitted > 6
    assert any(one.epoch == 1 for one in world.seen)
    complete(world, CHEAP_ANSWER)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("split", range(MOST + 1))
@pytest.mark.parametrize("at", [0, 3, 7])
def test_the_stop_token_ends_the_stream_and_the_kv_is_published(
    mode: HandoffMode, split: int, at: int
) -> None:
    stop = frozenset({REAL_ANSWER[at]})
    expected = whole(REAL, stop)
    world = World(REAL, PROMPT[-1], MOST, mode, stop=stop)
    relay_reaches(world, split)
    world.drain()
    complete(world, expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("cap", [1, 4, MOST])
def test_a_capped_relay_stops_and_main_goes_on(mode: HandoffMode, cap: int) -> None:
    occupancy = Occupancy(most_tokens=cap, least_tokens=cap)
    world = World(REAL, PROMPT[-1], MOST, mode, occupancy=occupancy)
    relay_reaches(world, MOST)
    assert world.relay.emitted == cap
    assert world.released[Peer.RELAY] == 1
    world.drain()
    complete(world, REAL_ANSWER)


def shuffle(world: World, data: st.DataObject, most: int, scarce: bool = False) -> None:
    """Anything that may happen, in any order, some messages twice; preemption if ``scarce``."""
    for _ in range(most):
        moves: list[Callable[[], None]] = world.moves()
        if scarce:
            moves += [world.relay_preempted, world.main_preempted]
        for ends, queue in world.queues.items():
            if queue and ends[1] not in world.dead:
                moves.append(lambda ends=ends: world.deliver(ends, keep=True))  # type: ignore[misc]
        if not moves:
            return
        data.draw(st.sampled_from(moves))()


worlds = {
    "mode": st.sampled_from(MODES), "lead": st.integers(0, 4), "cap": st.integers(1, 20),
    "stop_at": st.integers(0, MOST + 6), "data": st.data(),
}  # fmt: skip


@given(**worlds)
@settings(max_examples=50, deadline=None)
def test_any_interleaving_with_the_real_model(
    mode: HandoffMode, lead: int, cap: int, stop_at: int, data: st.DataObject
) -> None:
    stop = frozenset(REAL_ANSWER[stop_at : stop_at + 1])
    occupancy = Occupancy(most_tokens=cap, least_tokens=cap)
    world = World(REAL, PROMPT[-1], MOST, mode, lead, stop, occupancy)
    shuffle(world, data, data.draw(st.integers(0, 60)))
    world.drain()
    complete(world, whole(REAL, stop))


@given(**worlds)
@settings(max_examples=300, deadline=None)
def test_any_interleaving_with_a_cheap_model(
    mode: HandoffMode, lead: int, cap: int, stop_at: int, data: st.DataObject
) -> None:
    stop = frozenset(CHEAP_ANSWER[stop_at : stop_at + 1])
    occupancy = Occupancy(most_tokens=cap, least_tokens=cap)
    world = World(CHEAP, PROMPT[-1], MOST, mode, lead, stop, occupancy)
    shuffle(world, data, data.draw(st.integers(0, 100)))
    world.drain()
    complete(world, whole(CHEAP, stop))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("split", range(1, MOST + 1))
def test_behind_the_first_token_of_p_every_split_equals_one_engine(
    mode: HandoffMode, split: int
) -> None:
    world = World(REAL, PROMPT[-1], MOST, mode, prefilled=True)
    relay_reaches(world, split)
    world.drain()
    complete(world, REAL_ANSWER)
    assert [one.epoch for one in world.seen][:1] == [0]
    assert all(one.epoch > 0 for one in world.seen[1:])


@given(**worlds, prefilled=st.booleans())
@settings(max_examples=300, deadline=None)
def test_preemption_and_the_first_token_of_p_change_no_answer(
    mode: HandoffMode, lead: int, cap: int, stop_at: int, data: st.DataObject, prefilled: bool
) -> None:
    stop = frozenset(CHEAP_ANSWER[stop_at : stop_at + 1])
    occupancy = Occupancy(most_tokens=cap, least_tokens=cap)
    world = World(CHEAP, PROMPT[-1], MOST, mode, lead, stop, occupancy, prefilled=prefilled)
    shuffle(world, data, data.draw(st.integers(0, 120)), scarce=True)
    world.drain()
    complete(world, whole(CHEAP, stop))


def test_a_step_alone_waits_once_for_the_id_that_puts_it_in_phase() -> None:
    world = World(CHEAP, PROMPT[-1], MOST, HandoffMode.CATCH_UP)
    relay_reaches(world, 3)
    for _ in range(3):
        world.deliver((Peer.RELAY, Peer.MAIN))
    world.kv_comes()
    world.main_step()
    assert not world.main.may_wait
    relay_reaches(world, 4)
    world.deliver((Peer.RELAY, Peer.MAIN))  # in the middle of the step that computes it
    world.main_step()
    assert world.main.may_wait
    assert world.main.pending == 1
    relay_reaches(world, 5)
    world.deliver((Peer.RELAY, Peer.MAIN))
    assert not world.main.may_wait
    world.drain()
    complete(world, CHEAP_ANSWER)
