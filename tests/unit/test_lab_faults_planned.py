"""A plan's faults at work: any number on one link, each of which ends without the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.event import Kind
from testbed.contract.fault import (
    AddedDelay,
    Down,
    Effect,
    LinkFault,
    NodeFault,
    SlowRate,
    Span,
)
from testbed.run.deed import planned_deeds
from testbed.shaping.faulted import faulted
from tests.fakes.guarded_lab import AGENT, NETWORK, WIRE
from tests.unit.test_lab_faults import LINK, OPEN, Stage

pytestmark = pytest.mark.unit
NOW = (Span(begin_ns=0),)


@pytest.fixture(autouse=True)
def _ledgers_are_closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def on_link(name: str, effect: Effect, forward: bool = True, backward: bool = True) -> LinkFault:
    return LinkFault(
        name=name, spans=NOW, links=(LINK.name,), forward=forward, backward=backward, effect=effect
    )


POSSIBLE = (
    on_link("slow", SlowRate(rate_bps=8_000_000)),
    on_link("slower", SlowRate(rate_bps=800_000), backward=False),
    on_link("far", AddedDelay(delay_ns=5_000_000)),
    on_link("farther", AddedDelay(delay_ns=7_000_000), forward=False),
    on_link("down", Down()),
    on_link("down-again", Down()),
    on_link("deaf", Down(), forward=False),
)


@settings(deadline=None)
@given(st.lists(st.sampled_from(POSSIBLE), max_size=30))
def test_whatever_comes_and_goes_the_link_is_what_is_in_force(
    tmp_path_factory: pytest.TempPathFactory, moves: list[LinkFault]
) -> None:
    """A fault that is in force ends, any other begins."""
    stage = Stage()
    faults = stage.faults(tmp_path_factory.mktemp("run"))
    acting: dict[str, LinkFault] = {}
    for fault in moves:
        if fault.name in acting:
            faults.end(acting.pop(fault.name))
        else:
            faults.begin(fault)
            acting[fault.name] = fault
        effects = [one for one in acting.values() if not one.cuts]
        assert stage.now.forward == faulted(
            LINK.forward, [one.effect for one in effects if one.forward], ""
        )
        assert stage.now.backward == faulted(
            LINK.backward, [one.effect for one in effects if one.backward], ""
        )
        downs = [name for name, _ in stage.calls if name in ("cut", "mend")]
        assert bool(downs and downs[-1] == "cut") == any(one.cuts for one in acting.values())
    faults.end_all()
    assert (stage.now.forward, stage.now.backward) == (LINK.forward, LINK.backward)
    assert [n for n, _ in stage.calls].count("cut") == [n for n, _ in stage.calls].count("mend")
    assert stage.ledger.undo_all() == ()
    OPEN.pop().close()


def test_the_record_calls_a_fault_as_the_plan_does(tmp_path: Path) -> None:
    stage = Stage()
    faults = stage.faults(tmp_path)
    pause = NodeFault(name="gc-pause", spans=NOW, nodes=(AGENT,), act="pause")
    for fault in (pause, POSSIBLE[0]):
        faults.begin(fault)
        faults.end(fault)
    both = (Kind.FAULT_BEGAN, Kind.FAULT_ENDED)
    assert stage.notes == [
        (kind, *called) for called in (("gc-pause", AGENT), ("slow", LINK.name)) for kind in both
    ]


@pytest.mark.parametrize("name", ["kill", "pause", "restart", "disconnect", "cut", "reshape"])
def test_a_fault_of_a_link_may_be_called_like_an_act(tmp_path: Path, name: str) -> None:
    """A wire is often called like its link."""
    stage = Stage()
    faults = stage.faults(tmp_path)
    faults.begin(on_link(name, Down()))
    faults.restart(WIRE)
    assert faults.wants_back(WIRE)
    assert not faults.wants_changed(WIRE)
    faults.pause(WIRE)
    faults.resume(WIRE)
    faults.end(on_link(name, Down()))
    assert (Kind.FAULT_BEGAN, name, LINK.name) in stage.notes
    assert (Kind.FAULT_ENDED, name, LINK.name) in stage.notes


def test_at_one_moment_ends_come_before_begins() -> None:
    first = on_link("first", Down()).model_copy(
        update={"spans": (Span(begin_ns=1, end_ns=5), Span(begin_ns=5, end_ns=9))}
    )
    told: list[str] = []

    class Told:
        def begin(self, fault: LinkFault) -> None:
            told.append("begin")

        def end(self, fault: LinkFault) -> None:
            told.append("end")

    deeds = sorted(planned_deeds((first,)), key=lambda deed: deed.at_ns)
    for deed in deeds:
        deed.do(Told())  # type: ignore[arg-type]
    assert [deed.at_ns for deed in deeds] == [1, 5, 5, 9]
    assert told == ["begin", "end", "begin", "end"]
    assert NETWORK.links
