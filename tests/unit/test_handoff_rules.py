"""Epochs, the bounds of RLD's part, and the choice of a handoff."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from testbed.contract.handoff import HandoffConfig, HandoffMode, Occupancy
from testbed_agents.handoff.action import Release, Send
from testbed_agents.handoff.authority import Authority
from testbed_agents.handoff.choice import HandoffChoice, cap_tokens, lead_tokens
from testbed_agents.handoff.client import ClientPart, Delivered
from testbed_agents.handoff.main import MainPart
from testbed_agents.handoff.message import (
    Emission,
    Ending,
    Evicted,
    Failure,
    Peer,
    Refused,
    TokenIds,
)
from testbed_agents.handoff.relay import RelayPart


@given(st.lists(st.integers(0, 30), max_size=6))
def test_each_position_has_one_holder_which_is_the_newest_that_reaches_it(
    starts: list[int],
) -> None:
    authority = Authority(Peer.RELAY)
    for number, since in enumerate(starts, 1):
        assert authority.begin(number, since, Peer.MAIN)
    epochs = range(len(starts) + 1)
    for position in range(32):
        holders = [number for number in epochs if authority.may_emit(number, position)]
        reaching = [n for n in epochs if ([0, *starts])[n] <= position]
        assert holders == [max(reaching)]


def test_an_epoch_that_contradicts_what_is_known_is_an_error() -> None:
    authority = Authority(Peer.RELAY)
    authority.begin(2, 7, Peer.MAIN)
    assert not authority.begin(2, 7, Peer.MAIN)
    with pytest.raises(ValueError, match="differently"):
        authority.begin(2, 8, Peer.MAIN)
    with pytest.raises(ValueError, match="comes after"):
        authority.begin(1, 8, Peer.MAIN)


def test_dynamic_choice_stays_between_its_marks() -> None:
    config = HandoffConfig(mode=HandoffMode.DYNAMIC, lower=0.5, upper=0.8)
    choice = HandoffChoice(config)
    chosen = [choice.choose(load) for load in (0.0, 0.79, 0.8, 0.6, 0.5, 0.79)]
    up, down = HandoffMode.CATCH_UP, HandoffMode.ONE_SHOT
    assert chosen == [up, up, down, down, up, up]


def test_a_fixed_mode_ignores_the_load() -> None:
    choice = HandoffChoice(HandoffConfig(mode=HandoffMode.CATCH_UP))
    assert {choice.choose(load) for load in (0.0, 1.0)} == {HandoffMode.CATCH_UP}


@given(st.floats(0, 2), st.floats(0, 2))
def test_the_cap_falls_with_the_load_and_keeps_its_limits(one: float, other: float) -> None:
    occupancy = Occupancy(most_tokens=1000, least_tokens=100, easy=0.5)
    low, high = sorted((one, other))
    assert 1000 >= cap_tokens(occupancy, low) >= cap_tokens(occupancy, high) >= 100
    assert cap_tokens(occupancy, 0.5) == 1000
    assert cap_tokens(occupancy, 0.75) == 550
    assert cap_tokens(occupancy, 1.0) == 100


def test_relay_holds_a_request_for_a_bounded_time() -> None:
    relay = RelayPart(1, 0, 100, frozenset(), Occupancy(hold_ns=50), 1000)
    for now in (1010, 1049, 1050):
        assert relay.plan() is not None
        out = relay.stepped(3, 0.0, now)
        assert (Release() in out) is (now == 1050)
    assert relay.plan() is None


def test_the_lead_covers_a_round_trip() -> None:
    assert lead_tokens(30_000_000, 20_000_000) == 3
    assert lead_tokens(0, 20_000_000) == 1
    with pytest.raises(ValueError, match="step_ns > 0"):
        lead_tokens(1, 0)


@pytest.mark.parametrize(
    "wrong", [{"lower": 0.8, "upper": 0.8}, {"upper": 1.5}, {"mode": "abrupt"}]
)
def test_a_handoff_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        HandoffConfig.model_validate(wrong)
    with pytest.raises(ValidationError, match="least_tokens"):
        Occupancy(most_tokens=1, least_tokens=2)


def test_late_emissions_of_an_older_epoch_are_fenced_off() -> None:
    client = ClientPart(1)
    client.accept(Emission(1, 0, 0, 0, (10,), False))
    client.accept(Emission(1, 0, 0, 2, (99,), False))
    assert client.accept(Emission(1, 1, 1, 1, (11,), False)) == (Delivered(1, 11, 1),)
    assert client.accept(Emission(1, 0, 0, 2, (99,), False)) == ()
    assert client.fenced == 2
    assert client.accept(Emission(1, 1, 1, 2, (12,), True)) == (Delivered(2, 12, 1),)
    assert client.outcome == "done"


def test_main_answers_what_a_lost_relay_had_promised() -> None:
    main = MainPart(1, 0, 9, frozenset())
    main.kv_verified(HandoffMode.CATCH_UP)
    main.heard_tokens(TokenIds(1, 0, (10,), False, 0))
    main.evicted(Evicted(1, 3, Ending.TAKEOVER))
    assert main.reign.since == 3
    main.relay_lost()
    assert (main.reign.epoch, main.reign.since) == (2, 1)


def test_a_refusal_waits_for_the_last_word_of_the_relay_before_the_client_is_told() -> None:
    main = MainPart(5, 9, 12, frozenset())
    told = main.kv_refused("timeout")
    assert Send(Peer.RELAY, Refused(5, "timeout")) in told
    assert main.orphaned
    failed = main.evicted(Evicted(5, 3, Ending.CAP))
    assert failed == (Send(Peer.CLIENT, Failure(5, "timeout")),)
    assert not main.orphaned


def test_rows_of_the_relay_are_awaited_until_they_arrive_or_fail() -> None:
    for arrives in (True, False):
        main = MainPart(5, 9, 12, frozenset())
        main.kv_verified(HandoffMode.INCREMENTAL_KV)
        assert main.other.awaits_rows
        if arrives:
            main.increment_arrived(2)
        else:
            main.increment_failed()
        assert not main.other.awaits_rows


def test_behind_the_first_token_of_p_main_may_be_heard_before_relay() -> None:
    client = ClientPart(1, prefilled=True)
    client.accept(Emission(1, 0, 0, 0, (7,), False))
    client.accept(Emission(1, 2, 2, 2, (9,), True))
    client.accept(Emission(1, 1, 1, 1, (8,), False))
    assert client.tokens == (7, 8, 9)
    assert (client.outcome, client.fenced) == ("done", 0)
