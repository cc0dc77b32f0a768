"""How this process stands in its own network, in words, and what differs between two standings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.lab.alarm import Alarm
from testbed.lab.namespace import HERE
from testbed.lab.standing import changed, standing_of

pytestmark = pytest.mark.unit
lines = st.frozensets(st.text(min_size=1, max_size=5, alphabet="abc"))


def test_every_device_is_told_with_its_state() -> None:
    standing = standing_of(HERE)
    assert any(line.startswith("device lo up, mtu ") for line in standing)
    assert "address 127.0.0.1/8 on lo" in standing


@given(lines, lines)
def test_what_differs_is_told_and_nothing_else(before: frozenset[str], now: frozenset[str]) -> None:
    told = [part.split(": ", 1) for part in changed(before, now).split("; ") if part]
    assert {line for word, line in told if word == "lost"} == before - now
    assert {line for word, line in told if word == "new"} == now - before


def test_a_network_at_rest_does_not_ring() -> None:
    alarm = Alarm({"here": HERE, "there": HERE})
    assert alarm.rung() == ()
    alarm.listen("here", HERE)
    alarm.leave("there")
    alarm.leave("there")
    assert alarm.rung() == ()
    alarm.close()
