"""A scenario made smaller keeps its times and ratios, or is refused with a size that works."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.agent import Shape
from testbed.contract.link import Jitter, LinkSpec, Slot
from testbed.contract.network import End, Link, Network
from testbed.contract.scale import FULL, Scale, paced
from testbed.errors import PlanError
from testbed.plan.scale import LEAST_PACKETS, SMALL_MTU, scaled
from testbed.scenario import Scenario, load_scenario
from testbed.scenario.realtime import RealTimeChoice
from testbed.units import Share

pytestmark = pytest.mark.unit


def at(percent: float, slow: float = 1.0, name: str = "pdd-hello") -> tuple[Scenario, Scale]:
    choice = RealTimeChoice(size=Share(round(percent * 1e13)), slow=slow)
    return scaled(load_scenario(name), choice)


def bdp_bytes(spec: LinkSpec) -> float:
    return spec.rate_bps * 2 * spec.delay_ns / 8e9


@settings(max_examples=60, deadline=None)
@given(percent=st.floats(1.5, 100))
def test_times_and_ratios_stay(percent: float) -> None:
    whole = load_scenario("pdd-hello")
    small, scale = at(percent)
    assert small.shape.bytes_per_token == round(whole.shape.bytes_per_token * scale.size)
    assert scale.size == pytest.approx(percent / 100, rel=0.01)
    for (_, before), (_, after) in zip(whole.links, small.links, strict=True):
        assert after.delay_ns == before.delay_ns
        service = whole.shape.bytes_per_token / before.rate_bps
        assert small.shape.bytes_per_token / after.rate_bps == pytest.approx(service, rel=1e-3)
        ratio = before.buffer_bytes / bdp_bytes(before)
        assert after.buffer_bytes / bdp_bytes(after) == pytest.approx(ratio, rel=1e-2)
        packet = after.superframe_bytes
        assert packet == SMALL_MTU or after.buffer_bytes >= LEAST_PACKETS * packet
        assert after.buffer_bytes >= 2 * packet
    assert len({spec.mtu for _, spec in small.links}) == 1
    assert small.workload == whole.workload


def test_caches_and_device_memory_hold_as_many_tokens_and_copies_take_as_long() -> None:
    settings_ = ("serving.memory.decode=1 GiB", "serving.hardware.decode=h200-md")
    whole = load_scenario("pdd-hello", settings_)
    small, scale = scaled(whole, RealTimeChoice(size=Share.parse("10 %")))
    assert whole.file.serving is not None
    assert small.file.serving is not None
    before, after = whole.file.serving, small.file.serving
    assert after.caches.prefill.bytes == round(before.caches.prefill.bytes * scale.size)
    assert after.caches.relay.bytes == 0
    assert after.memory.decode is not None
    assert after.memory.decode.bytes == round(2**30 * scale.size)
    assert after.memory.relay is None
    (_, slow_copy), (_, fast_copy) = small.by_role[0], whole.by_role[0]
    assert slow_copy.copy_byte_s * scale.size == pytest.approx(fast_copy.copy_byte_s)
    tokens = whole.shape.bytes_per_token
    assert slow_copy.kv_memory_bytes / small.shape.bytes_per_token == pytest.approx(
        fast_copy.kv_memory_bytes / tokens, rel=1e-6
    )


def test_nothing_changes_at_full_size() -> None:
    whole = load_scenario("hello")
    assert scaled(whole, None) == (whole, FULL)
    same, scale = scaled(whole, RealTimeChoice(slow=3.0))
    assert same == whole
    assert scale == Scale(size=1.0, slow=3.0)


def test_too_small_a_size_is_refused_with_one_that_works() -> None:
    with pytest.raises(PlanError, match="does not work") as caught:
        at(0.05)
    words = caught.value.remedy
    percent = float(words.split("at least ")[1].split("%")[0])
    at(percent)


def test_real_kv_must_still_fit_into_its_bytes() -> None:
    shape = load_scenario("smollm2-answer").shape
    assert isinstance(shape, Shape)
    with pytest.raises(PlanError, match="a block of KV would be"):
        at(50, name="smollm2-answer")


SPEC = LinkSpec(rate_bps=8_000_000, delay_ns=10_000, buffer_bytes=10**6)


def network(spec: LinkSpec) -> Network:
    ends = [End(node=n, interface=f"{n}0", wire_device=f"w{n}") for n in "ab"]
    link = Link(
        name="l", kind="wan", wire="w", a=ends[0], b=ends[1], inner=("x", "y"),
        forward=spec, backward=spec,
    )  # fmt: skip
    return Network(nodes=(), links=(link,), routes=(), neighbours=())


@given(
    slow=st.floats(1, 1000), rate=st.integers(10**6, 10**12), delay=st.integers(1000, 10**9),
    spread=st.integers(1, 10**6),
)  # fmt: skip
def test_slow_motion_there_and_back_is_the_same_network(
    slow: float, rate: int, delay: int, spread: int
) -> None:
    spec = SPEC.model_copy(
        update={
            "rate_bps": rate // 8 * 8, "delay_ns": delay, "jitter": Jitter(spread_ns=spread),
            "slot": Slot(min_ns=spread, max_ns=2 * spread),
        }
    )  # fmt: skip
    slower = paced(network(spec), slow)
    built = slower.links[0].forward
    assert built.rate_bps == pytest.approx(spec.rate_bps / slow, abs=4)
    assert built.delay_ns == pytest.approx(spec.delay_ns * slow, abs=0.5)
    assert built.buffer_bytes == spec.buffer_bytes
    again = paced(slower, 1 / slow).links[0].forward
    assert again.rate_bps == pytest.approx(spec.rate_bps, abs=4 * slow + 4)
    assert again.delay_ns == pytest.approx(spec.delay_ns, abs=1)
    assert again.jitter is not None
    assert again.jitter.spread_ns == pytest.approx(spread, abs=1)


@given(t=st.integers(-(10**15), 10**15), slow=st.floats(1, 1000))
def test_a_scale_converts_times_both_ways(t: int, slow: float) -> None:
    scale = Scale(slow=slow)
    assert scale.emulated_ns(scale.lab_ns(t)) == pytest.approx(t, abs=2)
    assert Scale().lab_ns(t) == t
    assert Scale().emulated_ns(t) == t
