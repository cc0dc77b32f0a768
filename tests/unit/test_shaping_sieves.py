"""Sieves and gates of a link: composed, compiled, and changed without touching what is queued."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.link import Jitter, LinkSpec
from testbed.contract.sieve import Flows, Hold, Sieve
from testbed.errors import PlanError
from testbed.lab.tc.inplace import Step, steps_between
from testbed.lab.tc.path import ways
from testbed.shaping.compile import compile_link
from testbed.shaping.faulted import faulted
from testbed.shaping.qdisc import Fq, Gate, Netem, PacketFilter
from tests.unit.test_shaping_in_place import LINK, SPEC, link, spec

pytestmark = pytest.mark.unit
ALL = (
    Sieve(kind="syn-loss", number=0, share=0.5, seed=7),
    Sieve(kind="blackhole", number=1, flows=Flows(between=("10.1.1.2", "10.2.1.2"), port=7001)),
    Sieve(kind="mtu", number=2, above=1400),
    Sieve(kind="mark", number=5, share=0.1, seed=8),
)
some_sieves = st.lists(st.sampled_from(ALL), unique=True)
GATED = spec(gate_ns=200_000)
HOLD = Hold(stop_ns=200_000, each_ns=5_000_000)


@given(some_sieves, st.randoms())
def test_sieves_stand_in_the_order_of_the_plan_whichever_came_first(
    some: list[Sieve], draw: object
) -> None:
    other = list(some)
    draw.shuffle(other)  # type: ignore[attr-defined]
    now = faulted(SPEC, some, "wan1")
    assert now == faulted(SPEC, other, "wan1")
    assert now.sieves == tuple(one for one in ALL if one in some)
    assert now.model_copy(update={"sieves": ()}) == SPEC


@given(some_sieves, some_sieves)
def test_only_sieves_that_differ_come_and_go(before: list[Sieve], after: list[Sieve]) -> None:
    old, new = (link(faulted(SPEC, some, "wan1")) for some in (before, after))
    steps = steps_between(old, new)
    assert steps is not None
    way = ways(LINK)[0]
    there = set(compile_link(old.forward).sieves)
    for step in steps:
        assert isinstance(step.spec, PacketFilter)
        assert (step.device, step.way.direction) == (way.leaves, way.direction)
        if step.away:
            there.remove(step.spec)
        else:
            assert step.spec not in there
            there.add(step.spec)
    assert there == set(compile_link(new.forward).sieves)
    assert len(steps) == len(set(before) ^ set(after))


def test_both_directions_draw_from_seeds_of_their_own() -> None:
    one, other = (
        compile_link(faulted(spec(seed=seed), ALL[:1], "wan1")).sieves[0] for seed in (1, 2)
    )
    assert one.seed != other.seed
    assert (one.opens, one.threshold) == (True, 2**31)


def test_a_hold_closes_a_gate_that_is_there_and_nothing_else() -> None:
    opened, closed = compile_link(GATED).delay, compile_link(faulted(GATED, [HOLD], "p1")).delay
    assert [type(one) for one in opened] == [Gate, Netem, Fq]
    assert opened[1:] == closed[1:]
    step = Step(ways(LINK)[0], "wb", closed[0])  # type: ignore[arg-type]
    (found,) = steps_between(link(GATED), link(faulted(GATED, [HOLD], "p1"))) or ()
    assert (found.device, found.spec, found.away) == (step.device, step.spec, False)


def test_a_gate_and_a_slower_link_are_changed_in_place() -> None:
    slow = GATED.model_copy(update={"rate_bps": 10**8, "delay_ns": 20_000_000})
    assert steps_between(link(GATED), link(slow)) is not None


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        (spec(hold=HOLD.model_dump()), "no gate"),
        (spec(gate_ns=1_000, jitter=Jitter(spread_ns=1_000).model_dump()), "keeps order"),
        (faulted(SPEC, [Sieve(kind="mtu", number=0, above=9_000)], ""), "no IP packet"),
    ],
)
def test_what_cannot_be_is_refused(wrong: LinkSpec, cause: str) -> None:
    with pytest.raises(PlanError, match=cause):
        compile_link(wrong)
