"""How often a broken connection is opened anew."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed_agents.transport.reopening import patience_s, pause_s

pytestmark = pytest.mark.unit


@given(attempt=st.integers(0, 10_000), whole=st.floats(0.001, 1_000))
def test_an_attempt_is_short_and_one_in_sixteen_has_all_the_time(
    attempt: int, whole: float
) -> None:
    patience = patience_s(attempt, whole)
    assert 0 < patience <= whole
    assert patience <= 1 or attempt % 16 == 15
    assert patience_s(attempt | 15, whole) == whole


@given(attempt=st.integers(0, 10_000))
def test_a_leg_that_is_up_again_is_seen_within_two_seconds(attempt: int) -> None:
    assert pause_s(attempt) <= pause_s(attempt + 1) <= 1
    if attempt % 16 != 15:
        assert pause_s(attempt) + patience_s(attempt, 300) <= 2
