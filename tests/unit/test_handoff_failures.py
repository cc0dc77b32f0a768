"""A side that dies, refuses or leaves: the answer is identical or absent, all is returned."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.handoff import HandoffMode, Occupancy
from testbed_agents.handoff.message import Ending, Peer, TokenIds
from tests.fakes.handoff_world import SumSequence, World, reference
from tests.unit.test_handoff_interleavings import MODES, shuffle

MOST, FEED = 12, 9
PROMPT = SumSequence((2, 7, 1, 8))
ANSWER = reference(PROMPT, FEED, MOST, frozenset())


def a_world(mode: HandoffMode, data: st.DataObject) -> World:
    cap = data.draw(st.integers(1, MOST))
    occupancy = Occupancy(most_tokens=cap, least_tokens=cap)
    world = World(
        PROMPT, FEED, MOST, mode, data.draw(st.integers(0, 3)), occupancy=occupancy,
        prefilled=data.draw(st.booleans()),
    )  # fmt: skip
    shuffle(world, data, data.draw(st.integers(0, 50)), scarce=True)
    return world


def lose(world: World, data: st.DataObject, sender: Peer) -> None:
    """Of what a dead side had sent, each queue loses an end."""
    for (by, _), queue in world.queues.items():
        if by is sender:
            for _ in range(data.draw(st.integers(0, len(queue)))):
                queue.pop()


def identical_or_absent(world: World) -> None:
    seen = tuple(one.token for one in world.seen)
    assert [one.position for one in world.seen] == list(range(len(seen)))
    assert world.client.outcome is not None
    if world.client.outcome == "done":
        assert seen == ANSWER
    else:
        assert seen == ANSWER[: len(seen)]


@given(mode=st.sampled_from(MODES), data=st.data())
@settings(max_examples=250, deadline=None)
def test_when_relay_dies_main_answers_in_full(mode: HandoffMode, data: st.DataObject) -> None:
    world = a_world(mode, data)
    world.relay_dies()
    lose(world, data, Peer.RELAY)
    for tell in data.draw(st.permutations([Peer.MAIN, Peer.CLIENT])):
        shuffle(world, data, data.draw(st.integers(0, 10)))
        # An ended connection is noticed behind what it still delivered.
        queue = world.queues.get((Peer.RELAY, tell))
        while queue:
            world.deliver((Peer.RELAY, tell))
        if tell is Peer.MAIN:
            world.do(Peer.MAIN, world.main.relay_lost())
        else:
            world.do(Peer.CLIENT, world.client.relay_lost())
    world.drain()
    assert tuple(one.token for one in world.seen) == ANSWER
    assert world.client.outcome == "done"
    assert world.published == 1
    assert world.released[Peer.MAIN] == 1


@given(mode=st.sampled_from(MODES), data=st.data())
@settings(max_examples=150, deadline=None)
def test_when_main_refuses_relay_ends_the_answer_or_it_fails(
    mode: HandoffMode, data: st.DataObject
) -> None:
    world = a_world(mode, data)
    if world.coming is None:
        return
    world.kv_fails()
    world.drain()
    identical_or_absent(world)
    assert world.client.outcome in ("done", "memory")
    assert world.released == {Peer.RELAY: 1, Peer.MAIN: 1}
    assert world.published == 0


def test_a_refused_request_is_answered_by_relay_within_its_bounds() -> None:
    world = World(PROMPT, FEED, MOST, HandoffMode.CATCH_UP)
    world.kv_fails()
    world.drain()
    assert world.client.outcome == "done"
    assert world.client.tokens == ANSWER


@given(mode=st.sampled_from(MODES), data=st.data())
@settings(max_examples=150, deadline=None)
def test_when_main_dies_the_answer_is_identical_or_absent(
    mode: HandoffMode, data: st.DataObject
) -> None:
    world = a_world(mode, data)
    world.main_dies()
    lose(world, data, Peer.MAIN)
    shuffle(world, data, data.draw(st.integers(0, 10)))
    queue = world.queues.get((Peer.MAIN, Peer.RELAY))
    while queue:
        world.deliver((Peer.MAIN, Peer.RELAY))
    world.do(Peer.RELAY, world.relay.main_lost("main-lost"))
    world.drain()
    if world.increment is not None:
        world.increment = None
        world.do(Peer.RELAY, world.relay.increment_done())
    world.drain()
    if world.relay.cause is not Ending.LAST:
        world.end("main-lost")  # the router's word, once RLD has left it, too
    identical_or_absent(world)
    assert world.released[Peer.RELAY] == 1


@given(mode=st.sampled_from(MODES), data=st.data())
@settings(max_examples=150, deadline=None)
def test_when_the_client_leaves_everything_is_returned(
    mode: HandoffMode, data: st.DataObject
) -> None:
    world = a_world(mode, data)
    world.end("left")
    seen = len(world.seen)
    for tell in data.draw(st.permutations([Peer.RELAY, Peer.MAIN])):
        if tell is Peer.RELAY:
            world.do(tell, world.relay.cancelled())
        else:
            world.do(tell, world.main.cancelled())
        shuffle(world, data, data.draw(st.integers(0, 10)))
    world.drain()
    assert len(world.seen) == seen
    assert world.released == {Peer.RELAY: 1, Peer.MAIN: 1}
    assert world.published == 1


def test_engines_that_disagree_give_no_answer() -> None:
    world = World(PROMPT, FEED, MOST, HandoffMode.CATCH_UP)
    world.kv_comes()
    world.main_step()
    world.main_step()
    wrong = TokenIds(5, 0, (ANSWER[0] + 1,), False, 0)
    world.do(Peer.MAIN, world.main.heard_tokens(wrong))
    world.drain()
    assert world.client.outcome == "diverged at position 0"
    assert world.released == {Peer.RELAY: 1, Peer.MAIN: 1}


def test_a_gap_in_the_token_ids_waits_until_it_is_filled() -> None:
    world = World(PROMPT, FEED, MOST, HandoffMode.CATCH_UP)
    world.main.heard_tokens(TokenIds(5, 1, ANSWER[1:3], False, 0))
    assert world.main.known.heard == 0
    world.main.heard_tokens(TokenIds(5, 0, ANSWER[:1], False, 0))
    assert world.main.known.heard == 3
    assert tuple(world.main.known.tokens) == ANSWER[:3]


def test_misuse_is_an_error() -> None:
    world = World(PROMPT, FEED, MOST, HandoffMode.CATCH_UP)
    with pytest.raises(ValueError, match="no step was planned"):
        world.relay.stepped(1, 0.0, 0)
    with pytest.raises(ValueError, match="no step was planned"):
        world.main.stepped(1)
    with pytest.raises(ValueError, match="choice between modes"):
        world.main.kv_verified(HandoffMode.DYNAMIC)
