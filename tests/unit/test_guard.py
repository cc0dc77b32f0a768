"""What ends, comes back and changes in a lab at work: taken up, expected, or the run is invalid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.event import Kind
from testbed.errors import AgentError, FidelityError, LabError
from testbed.lab.guard import AWAY_MOST_NS
from tests.fakes.guarded_lab import AGENT, ROUTER, WIRE, GuardedLab

pytestmark = pytest.mark.unit
TICK_NS = 100_000_000


def test_a_lab_at_rest_says_nothing() -> None:
    lab = GuardedLab()
    with lab.guard() as guard:
        for tick in range(50):
            guard.look(tick * TICK_NS)
        guard.conclude()
    assert lab.notes == []
    assert lab.heard == {}


def test_a_wire_that_comes_back_is_taken_up_and_counted_anew() -> None:
    lab = GuardedLab()
    guard = lab.guard()
    lab.fell_now[WIRE] = "started anew"
    guard.look(TICK_NS)
    assert lab.open == set()
    assert not lab.heard[WIRE]
    lab.rises.add(WIRE)
    guard.look(2 * TICK_NS)
    guard.conclude()
    assert [kind for kind, _ in lab.notes] == [Kind.NODE_LOST, Kind.NODE_BACK]
    assert lab.open == {WIRE}
    assert lab.heard[WIRE]
    assert lab.anew == ["wan1"]


@given(fall=st.integers(0, 30), back=st.integers(1, 30), node=st.sampled_from([WIRE, ROUTER]))
def test_who_is_away_for_a_second_ends_the_run_within_it(fall: int, back: int, node: str) -> None:
    lab = GuardedLab()
    guard = lab.guard()
    for tick in range(fall + back + 1):
        if tick == fall:
            lab.fell_now[node] = "ended"
        if tick == fall + back:
            lab.rises.add(node)
        late = tick - fall >= AWAY_MOST_NS // TICK_NS and tick < fall + back
        if late:
            with pytest.raises(FidelityError, match=f"{node}: ended {fall / 10:.3f} s"):
                guard.look(tick * TICK_NS)
            assert lab.of(Kind.SHAPING_LOST) == [node]
            return
        guard.look(tick * TICK_NS)
    assert lab.of(Kind.NODE_BACK) == [node]
    assert lab.of(Kind.SHAPING_LOST) == []


def test_who_runs_again_in_time_may_take_longer_to_set_itself_up() -> None:
    lab = GuardedLab()
    guard = lab.guard()
    lab.fell_now[WIRE] = "started anew"
    lab.runs_again.add(WIRE)
    for tick in range(40):
        guard.look(tick * TICK_NS)
    lab.rises.add(WIRE)
    guard.look(40 * TICK_NS)
    guard.conclude()
    assert lab.of(Kind.NODE_BACK) == [WIRE]


def test_who_runs_again_and_never_sets_itself_up_makes_the_run_invalid() -> None:
    lab = GuardedLab()
    guard = lab.guard()
    lab.fell_now[WIRE] = "started anew"
    lab.runs_again.add(WIRE)
    guard.look(0)
    with pytest.raises(FidelityError, match="it is away"):
        guard.look(61 * 10**9)


def test_who_is_away_at_the_end_makes_the_run_invalid_however_short() -> None:
    lab = GuardedLab()
    guard = lab.guard()
    lab.fell_now[ROUTER] = "ended"
    guard.look(TICK_NS)
    with pytest.raises(FidelityError, match="it is away"):
        guard.conclude()


def test_what_a_fault_started_anew_may_take_its_time_but_not_for_ever() -> None:
    lab = GuardedLab()
    guard = lab.guard()
    lab.wanted.add(WIRE)
    lab.fell_now[WIRE] = "started anew"
    for tick in range(500):
        guard.look(tick * TICK_NS)
    with pytest.raises(LabError, match="it is away"):
        guard.look(10**12)


@pytest.mark.parametrize("node", [WIRE, ROUTER, AGENT])
def test_a_change_that_nobody_wants_is_lost_shaping(node: str) -> None:
    lab = GuardedLab()
    guard = lab.guard()
    guard.look(TICK_NS)
    lab.wrong[node] = "down"
    guard.look(2 * TICK_NS)  # not told yet
    lab.ringing = [node]
    with pytest.raises(FidelityError, match=rf"{node}: between 0\.200.*down"):
        guard.look(3 * TICK_NS)
    assert lab.of(Kind.SHAPING_LOST) == [node]


@pytest.mark.parametrize("node", [WIRE, ROUTER, AGENT])
def test_the_last_look_finds_what_nobody_told(node: str) -> None:
    lab = GuardedLab()
    guard = lab.guard()
    lab.wrong[node] = "down"
    with pytest.raises(FidelityError):
        guard.conclude()


def test_devices_that_go_with_their_container_are_no_change_of_their_own() -> None:
    lab = GuardedLab()
    guard = lab.guard()

    def dies_while_it_is_read(wire: str) -> object:
        lab.fell_now[wire] = "killed"
        del lab.read_wire  # type: ignore[attr-defined]
        lab.wrong[wire] = "absent"
        return lab.read_wire(wire)

    lab.read_wire = dies_while_it_is_read  # type: ignore[method-assign,assignment]
    lab.ringing = [WIRE]
    guard.look(TICK_NS)
    assert lab.of(Kind.NODE_LOST) == [WIRE]
    assert lab.of(Kind.SHAPING_LOST) == []


def test_an_agent_that_ends_is_the_crews_affair() -> None:
    lab = GuardedLab()
    guard = lab.guard()
    lab.fell_now[AGENT] = "its container ended with status 137"
    with pytest.raises(AgentError, match="status 137"):
        guard.look(TICK_NS)


def test_an_agent_whose_end_is_wanted_is_looked_at_no_more() -> None:
    lab = GuardedLab()
    guard = lab.guard()
    lab.wanted.add(AGENT)
    lab.fell_now[AGENT] = "killed"
    guard.look(TICK_NS)
    lab.wrong[AGENT] = "gone"
    lab.ringing = [AGENT]
    guard.conclude()
    assert lab.of(Kind.NODE_LOST) == [AGENT]
