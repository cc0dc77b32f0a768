"""The shipped profiles are those of the roofline, and meet the figures they are fitted to."""

from __future__ import annotations

import pytest

from testbed.contract.agent import Hardware
from testbed.hardware import anchors
from testbed.hardware.calibration import (
    EXTEND_STEPS,
    H100_P,
    H200_MD,
    after_prefill_s,
    calibrated,
    roofline,
    sequences,
)
from testbed.hardware.chip import RELATIVE_CHIPS, RelativeChip
from testbed.hardware.render import duration, yaml_lines
from testbed.hardware.shipped import Shipped, shipped
from testbed.hardware.waiting import percentile_s
from testbed.scenario.data import DataKind, folder
from testbed.scenario.profiles import hardware_profiles
from testbed_agents.hardware import copy_ns, decode_ns, prefill_ns

pytestmark = pytest.mark.unit

NEAR = 1e-3


def profile(name: str) -> Hardware:
    return hardware_profiles().profiles[name].resolve(name)


def step_s(hardware: Hardware, batch: float, extra: float = 0) -> float:
    """A step at a mean batch, which need not be whole."""
    sequence_s = (
        hardware.decode_sequence_s + anchors.MEAN_CONTEXT_TOKENS * hardware.decode_context_s
    )
    return hardware.decode_base_s + batch * sequence_s + extra * hardware.decode_extra_token_s


@pytest.mark.parametrize("one", shipped(), ids=lambda one: one.hardware.name)
def test_the_file_holds_what_this_room_compiles(one: Shipped) -> None:
    text = (folder(DataKind.PROFILES) / "hardware.yaml").read_text("utf-8")
    assert "\n".join(yaml_lines(one)) + "\n" in text, "run python -m testbed.hardware"
    found, made = profile(one.hardware.name).model_dump(), one.hardware.model_dump()
    assert found.pop("source").split() == made.pop("source").split()
    near = {key: pytest.approx(value, rel=NEAR) for key, value in made.items() if key != "name"}
    assert found == {"name": made["name"], **near}


def test_durations_are_whole_nanoseconds() -> None:
    assert duration(0.0500622328) == "50.062 ms"
    assert duration(0.00010195780) == "101.96 us"
    assert duration(1e-9) == "0.001 us"
    assert duration(12.0) == "12000 ms"


def test_decode_in_one_data_centre_takes_the_limit_at_the_published_rate() -> None:
    batch = sequences(anchors.IDC_REQUESTS_S, anchors.TPOT_LIMIT_S)
    assert step_s(profile("h100-d"), batch) == pytest.approx(anchors.TPOT_LIMIT_S, rel=NEAR)


def test_main_decode_catches_up_in_the_published_time_at_the_published_rate() -> None:
    main = profile("h200-md")
    busy = 1.0
    for _ in range(50):  # the batch that the rate keeps busy, by iteration
        busy = sequences(anchors.PDD_REQUESTS_S, step_s(main, busy))
    extra = anchors.EXTEND_TOKENS - EXTEND_STEPS
    found = EXTEND_STEPS * step_s(main, busy + 1) + extra * main.decode_extra_token_s
    assert found == pytest.approx(anchors.EXTEND_S, rel=NEAR)
    assert step_s(main, busy) < anchors.TPOT_LIMIT_S


def test_one_pass_over_all_ids_would_be_five_times_faster_than_published() -> None:
    main = roofline(H200_MD, calibrated())
    one_pass_s = main.decode_s(29, 29 * anchors.MEAN_CONTEXT_TOKENS, anchors.EXTEND_TOKENS - 1)
    assert 5 < anchors.EXTEND_S / one_pass_s < 6


def test_copies_of_a_hundred_tokens_take_the_published_time() -> None:
    main = profile("h200-md")
    found_s = 2 * copy_ns(main, 100 * 5_511) / 1e9
    assert found_s == pytest.approx(anchors.COPIES_S, rel=NEAR * 2)


def test_the_speed_of_prefill_gives_the_published_median_and_finds_the_published_p90() -> None:
    prefill = roofline(H100_P, calibrated()).prefill_s
    after_s = after_prefill_s(calibrated())
    found = [
        percentile_s(prefill, anchors.PDD_REQUESTS_S, share) + after_s for share in (0.5, 0.9, 0.99)
    ]
    assert found[0] == pytest.approx(anchors.TTFT_MEDIAN_S, rel=0.03)
    assert found[1:] == pytest.approx([10.4, 17.2], rel=0.2)  # not fitted


def test_a_mean_prefill_keeps_ten_instances_busy_at_the_published_rate() -> None:
    uncached = round(0.1 * anchors.INPUT_TOKENS)
    mean_s = prefill_ns(profile("h100-p"), uncached, anchors.INPUT_TOKENS - uncached) / 1e9
    busy = mean_s * anchors.PDD_REQUESTS_S / anchors.PREFILL_INSTANCES
    assert busy == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("chip", RELATIVE_CHIPS.values(), ids=lambda chip: chip.name)
def test_a_relative_chip_has_its_share_of_throughput(chip: RelativeChip) -> None:
    one, prefill, decode = profile(chip.name), profile("h100-p"), profile("h100-d")
    ratio = prefill_ns(prefill, 6_554, 58_982) / prefill_ns(one, 6_554, 58_982)
    assert ratio == pytest.approx(chip.prefill, rel=NEAR)
    # 28 sequences on H100 take as long as share x 28 on the chip: same TPOT, that share.
    assert step_s(one, 28 * chip.decode) == pytest.approx(step_s(decode, 28), rel=NEAR)


def test_older_profiles_are_as_they_were() -> None:
    old = profile("pdd-4xh100")
    assert prefill_ns(old, 6_554, 58_982) == 650_719_962
    assert decode_ns(old, 32, 2_000_000) == decode_ns(old, 32, 2_000_000, extra=50)
    assert (old.prefill_floor_s, old.copy_base_s, old.extend_width, old.kv_memory_bytes) == (
        0.0, 0.0, 0, 0,
    )  # fmt: skip


def test_a_share_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="above zero"):
        RelativeChip("none", 0.0, 1.0, "glm-5", "system", "made up")
