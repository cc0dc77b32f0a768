"""What a client accepts: each position once, in order, and nothing after the end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import AgentError
from testbed_agents.client.agent import Answers


@given(tokens=st.lists(st.integers(0, 511), max_size=30))
def test_tokens_in_order_are_kept(tokens: list[int]) -> None:
    answers = Answers()
    answers.open(4)
    for position, token in enumerate(tokens):
        assert answers.accept(4, position, token) is None
    assert answers.tokens[4] == tokens


@given(have=st.integers(0, 5), position=st.integers(0, 10))
def test_any_other_position_is_out_of_order(have: int, position: int) -> None:
    answers = Answers()
    answers.open(0)
    for at in range(have):
        answers.accept(0, at, at)
    expected = None if position == have else "token-out-of-order"
    assert answers.accept(0, position, 7) == expected


def test_nothing_is_accepted_after_the_end() -> None:
    answers = Answers()
    ended = answers.open(1)
    answers.end(1)
    assert ended.is_set()
    assert answers.accept(1, 0, 3) == "token-after-end"
    assert answers.accept(2, 0, 3) == "token-after-end"
    assert answers.unfinished() == []


def test_a_request_is_sent_once() -> None:
    answers = Answers()
    answers.open(1)
    with pytest.raises(AgentError, match="already"):
        answers.open(1)
    assert answers.unfinished() == [1]
