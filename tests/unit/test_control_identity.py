"""Which life of an agent a message is from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import ProtocolError
from testbed_agents.control.identity import Lives, identity, read_identity

pytestmark = pytest.mark.unit

NAMES = st.text(st.characters(categories=["Ll", "Nd"]), min_size=1, max_size=12)


@given(name=NAMES, incarnation=st.integers(0, 999_999_999))
def test_a_name_and_a_life_come_back(name: str, incarnation: int) -> None:
    assert read_identity(identity(name, incarnation)) == (name, incarnation)


@pytest.mark.parametrize("signed", ["p1#", "p1#0", "p1#01", "p1#-1", "p1#x", "p1#1#2", "p1#²"])
def test_nonsense_is_refused(signed: str) -> None:
    with pytest.raises(ProtocolError):
        read_identity(signed)


@given(heard=st.lists(st.integers(0, 4), max_size=20), first=st.booleans())
def test_lives_only_follow_each_other(heard: list[int], first: bool) -> None:
    lives = Lives(first)
    newest = None if not first else 0
    for incarnation in heard:
        expected = None if newest is not None and incarnation < newest else (
            newest is not None and incarnation > newest
        )  # fmt: skip
        assert lives.hear("p1", incarnation) is expected
        newest = incarnation if newest is None else max(newest, incarnation)
