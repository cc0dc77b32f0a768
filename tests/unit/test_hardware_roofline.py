"""The roofline against what can be counted by hand and against public figures."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.hardware.calibration import H100_D, H100_P, H200_MD, calibrated, roofline
from testbed.hardware.chip import CHIPS, H100_SXM
from testbed.hardware.compile import HIGH_BATCH, LOW_BATCH, compile_roofline
from testbed.hardware.model_cost import DEEPSEEK_V4_PRO
from testbed.hardware.roofline import Efficiency, Instance, Roofline
from testbed.scenario.profiles import kv_profiles

pytestmark = pytest.mark.unit

PERFECT = Efficiency(
    prefill_compute=1, decode_compute=1, memory=1, link=1, usable_memory=1,
    layer_s=0, exchange_s=0, copy_s=0,
)  # fmt: skip
BATCH = st.integers(1, 64)


def test_the_parameters_add_up_to_the_public_counts() -> None:
    assert DEEPSEEK_V4_PRO.active_parameters == pytest.approx(49e9, rel=1e-6)
    assert DEEPSEEK_V4_PRO.total_parameters == pytest.approx(1.6e12, rel=0.02)


def test_the_geometry_gives_the_sizes_of_the_kv_profile() -> None:
    fp8 = kv_profiles().profiles["deepseek-v4-pro"].precisions["fp8"]
    assert fp8.bytes_per_token.value.bytes == DEEPSEEK_V4_PRO.kv_bytes_per_token
    assert fp8.fixed is not None
    assert fp8.fixed.value.bytes == DEEPSEEK_V4_PRO.kv_fixed_bytes
    assert int(30 * (584 + 132) / 4 + 31 * 584 / 128) == DEEPSEEK_V4_PRO.kv_bytes_per_token
    assert pytest.approx(61 * 128 * 584, rel=1e-3) == DEEPSEEK_V4_PRO.kv_fixed_bytes


def test_operations_at_a_million_tokens_are_the_published_share_of_v3_2() -> None:
    # DeepSeek-V3.2: 37e9 active; 61 layers read 2,048 entries of 576 + 512 with 128 heads,
    # after an indexer of 64 heads of 128 over all of the context. Published: 27 %.
    context = 2**20
    older = 2 * 37e9 + 61 * (128 * (576 + 512) * 2 * 2_048 + 64 * 128 * 2 * context)
    newer = DEEPSEEK_V4_PRO.flop_per_token + DEEPSEEK_V4_PRO.attention(context)
    assert newer / older == pytest.approx(0.27, abs=0.01)


def test_one_token_reads_the_active_weights_and_very_many_read_all() -> None:
    model = DEEPSEEK_V4_PRO
    assert model.read_bytes(1) == pytest.approx(model.active_parameters)
    assert model.read_bytes(100_000) == pytest.approx(model.weight_bytes)


def test_a_perfect_chip_takes_operations_over_speed() -> None:
    one = Roofline(Instance("one", H100_SXM, 1, 1), DEEPSEEK_V4_PRO, PERFECT)
    uncached, context = 10_000, 50_000
    attention = uncached * DEEPSEEK_V4_PRO.attention(context + uncached / 2)
    expected = uncached * 98e9 / 1_979e12 + attention / 989.5e12
    assert one.prefill_s(uncached, context) == pytest.approx(expected, rel=1e-6)


def test_a_perfect_chip_decodes_at_the_speed_of_its_memory() -> None:
    one = Roofline(Instance("one", H100_SXM, 1, 1), DEEPSEEK_V4_PRO, PERFECT)
    kv = DEEPSEEK_V4_PRO.kv_read_bytes + 65_536 * DEEPSEEK_V4_PRO.kv_read_bytes_per_context
    assert one.decode_s(1, 65_536) == pytest.approx((49e9 + kv) / 3.35e12, rel=1e-6)


def test_a_copy_takes_the_link_and_the_fixed_time() -> None:
    ready = dataclasses.replace(PERFECT, copy_s=0.01)
    one = Roofline(Instance("one", H100_SXM, 1), DEEPSEEK_V4_PRO, ready)
    assert one.copy_s(64_000_000) == pytest.approx(0.011)


def test_weights_that_do_not_fit_are_refused() -> None:
    two_nodes = Roofline(Instance("two", H100_SXM, 2), DEEPSEEK_V4_PRO, PERFECT)
    with pytest.raises(ValueError, match="does not fit into two"):
        _ = two_nodes.kv_memory_bytes
    assert roofline(H100_D, calibrated()).kv_memory_bytes > 0


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one chip"):
        Instance("none", H100_SXM, 0)
    with pytest.raises(ValueError, match="share of a peak"):
        dataclasses.replace(PERFECT, memory=1.1)


@pytest.mark.parametrize("name", sorted(CHIPS))
def test_every_chip_says_where_its_figures_are_from(name: str) -> None:
    assert "datasheet" in CHIPS[name].source


@given(batch=BATCH, more=BATCH, extra=st.integers(0, 100))
def test_more_work_never_takes_less_time(batch: int, more: int, extra: int) -> None:
    one = roofline(H200_MD, calibrated())
    step_s = one.decode_s(batch, batch * 60_000)
    assert one.decode_s(batch + more, (batch + more) * 60_000) >= step_s
    assert one.decode_s(batch, batch * 60_000, extra) >= step_s
    assert one.prefill_s(batch + more, 5_000) >= one.prefill_s(batch, 5_000)


@pytest.mark.parametrize("instance", [H100_P, H100_D, H200_MD], ids=lambda one: one.name)
@pytest.mark.parametrize(("uncached", "cached"), [(655, 64_881), (6_554, 58_982), (65_536, 0)])
def test_the_compiled_prefill_is_the_roofline(
    instance: Instance, uncached: int, cached: int
) -> None:
    exact = roofline(instance, calibrated())
    line = compile_roofline(exact, "test")
    found = (
        line.prefill_base_s
        + uncached * line.prefill_token_s
        + uncached * (cached + uncached / 2) * line.prefill_attention_s
    )
    assert found == pytest.approx(exact.prefill_s(uncached, cached), rel=1e-9)


@given(batch=BATCH)
def test_the_compiled_decode_stays_near_the_roofline(batch: int) -> None:
    exact = roofline(H200_MD, calibrated())
    line = compile_roofline(exact, "test")
    context = batch * 65_536
    found = line.decode_base_s + batch * line.decode_sequence_s + context * line.decode_context_s
    near = 1e-9 if batch in (LOW_BATCH, HIGH_BATCH) else 0.08
    assert found == pytest.approx(exact.decode_s(batch, context), rel=near)
