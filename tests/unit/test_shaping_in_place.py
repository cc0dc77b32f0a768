"""Which changes of a link keep its queues, and what is then changed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.link import Distribution, Jitter, LinkSpec, RandomLoss, Slot
from testbed.contract.network import End, Link
from testbed.lab.tc.inplace import steps_between
from testbed.lab.tc.path import ways
from testbed.shaping.compile import StagePair, compile_link
from testbed.shaping.qdisc import Netem, Police

pytestmark = pytest.mark.unit
SPEC = LinkSpec(
    rate_bps=10**9, delay_ns=10_000_000, buffer_bytes=10**6, superframe_bytes=9000, seed=7
)
LINK = Link(
    name="wan1", kind="wan", wire="w",
    a=End(node="a", interface="eth0", wire_device="wa"),
    b=End(node="b", interface="eth0", wire_device="wb"),
    inner=("i0", "i1"), forward=SPEC, backward=SPEC,
)  # fmt: skip


def spec(**changes: object) -> LinkSpec:
    return LinkSpec.model_validate({**SPEC.model_dump(), **changes})


def link(forward: LinkSpec, backward: LinkSpec = SPEC) -> Link:
    return LINK.model_copy(update={"forward": forward, "backward": backward})


specs = st.builds(
    spec,
    rate_bps=st.sampled_from([10**8, 10**9, 10**10]),
    delay_ns=st.integers(1_000, 200_000_000),
    buffer_bytes=st.integers(10_000, 10**7),
    loss=st.sampled_from([None, RandomLoss(share=0.01)]),
)


@given(before=st.tuples(specs, specs), after=st.tuples(specs, specs))
def test_the_steps_turn_every_stage_into_the_new_one(
    before: tuple[LinkSpec, LinkSpec], after: tuple[LinkSpec, LinkSpec]
) -> None:
    old, new = link(*before), link(*after)
    steps = steps_between(old, new)
    assert steps is not None
    held = {
        (device, found.kind): found
        for way in ways(old)
        for device, stage in places(way.rate, way.leaves, compile_link(way.spec))
        for found in stage
    }
    for step in steps:
        assert held[step.device, step.spec.kind] != step.spec, "nothing is changed into itself"
        held[step.device, step.spec.kind] = step.spec
    wanted = {
        (device, found.kind): found
        for way in ways(new)
        for device, stage in places(way.rate, way.leaves, compile_link(way.spec))
        for found in stage
    }
    assert held == wanted


def places(rate: str, leaves: str, pair: StagePair) -> list[tuple[str, tuple[object, ...]]]:
    return [(rate, pair.rate), (leaves, pair.delay)]


def test_nothing_is_done_to_the_same_link() -> None:
    assert steps_between(LINK, LINK.model_copy()) == ()


def test_only_the_direction_that_changes_is_touched() -> None:
    steps = steps_between(LINK, link(SPEC, spec(delay_ns=20_000_000)))
    assert steps is not None
    assert [(step.way.direction.value, step.device) for step in steps] == [("backward", "wa")]
    assert isinstance(steps[0].spec, Netem)
    assert steps[0].spec == replace(steps[0].spec, latency_ns=20_000_000)


def test_a_buffer_is_changed_in_the_policer_and_in_the_limit_behind_it() -> None:
    steps = steps_between(LINK, link(spec(buffer_bytes=2_000_000)))
    assert steps is not None
    assert [type(step.spec) for step in steps] == [Police, Netem]
    assert {step.device for step in steps} == {"i0"}


WILD = Jitter(spread_ns=1_000_000, distribution=Distribution.NORMAL, reorder=True)
CALM = Jitter(spread_ns=1_000_000, distribution=Distribution.NORMAL)


@pytest.mark.parametrize(
    "other",
    [
        spec(jitter=WILD), spec(jitter=CALM), spec(rate_bps=0),
        spec(slot=Slot(min_ns=1_000_000, max_ns=2_000_000)),
    ],
)  # fmt: skip
def test_what_the_kernel_would_keep_or_lose_is_shaped_from_scratch(other: LinkSpec) -> None:
    assert steps_between(LINK, link(other)) is None
    assert steps_between(link(other), LINK) is None
