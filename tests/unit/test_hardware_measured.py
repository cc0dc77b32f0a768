"""A profile fitted to measurements: what was put in comes out, and it can be used as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.errors import ScenarioError
from testbed.hardware.measured import CopyPoint, DecodePoint, Fit, Measured, PrefillPoint, fit
from testbed.hardware.render import yaml_lines
from testbed.hardware.shipped import Shipped
from testbed.scenario import load_scenario
from testbed.scenario.hardware_file import read_hardware_file

Times = tuple[float, float, float, float]


def measured(
    prefill: Times, decode: Times, copy: tuple[float, float], noise: float = 0
) -> Measured:
    """Points that follow the formulas; with noise one run of three takes longer."""

    def runs(seconds: float) -> tuple[float, ...]:
        return (seconds, seconds * (1 + noise), seconds)

    base, token, attention, floor = prefill
    step, sequence, context, extra = decode
    return Measured(
        model="nano", device="cpu", device_name="a chip", torch="2", dtype="float64", threads=1,
        capability="AVX2", runs=3, kv_token_bytes=1024, free_bytes=0,
        prefill=tuple(
            PrefillPoint(tokens=u, context=c, seconds=runs(
                max(base + floor, base + u * token + u * (c + u / 2) * attention)
            ))
            for u in (1, 64, 128, 512, 2048) for c in (0, 512)
        ),
        decode=tuple(
            DecodePoint(batch=b, context=k * b, extra=e, seconds=runs(
                step + b * sequence + k * b * context + e * extra
            ))
            for b, k, e in ((1, 64, 0), (4, 64, 0), (4, 512, 0), (16, 512, 0), (1, 64, 99))
        ),
        copy=tuple(
            CopyPoint(bytes=n, seconds=runs(copy[0] + n * copy[1])) for n in (1 << 20, 1 << 24)
        ),
    )  # fmt: skip


SECONDS = st.floats(1e-6, 1e-2)
EACH = st.floats(1e-7, 1e-4)
PAIR = st.floats(1e-11, 1e-8)


@settings(max_examples=50, deadline=None)
@given(SECONDS, EACH, PAIR, SECONDS, EACH, PAIR, EACH, SECONDS)
def test_the_times_that_made_the_points_are_found(
    base: float, token: float, pair: float, step: float, sequence: float, context: float,
    extra: float, copy: float,
) -> None:  # fmt: skip
    found = fit(
        measured((base, token, pair, 0.0), (step, sequence, context, extra), (copy, 1e-10), 9.0),
        "x", "s",
    )  # fmt: skip
    one = found.hardware
    got = (
        one.prefill_base_s, one.prefill_token_s, one.prefill_attention_s, one.decode_base_s,
        one.decode_sequence_s, one.decode_context_s, one.decode_extra_token_s, one.copy_base_s,
    )  # fmt: skip
    wanted = (base, token, pair, step, sequence, context, extra, copy)
    assert got == pytest.approx(wanted, rel=1e-3, abs=1e-11)
    assert max(residual.worst for residual in found.residuals) < 1e-6


def example(noise: float = 0.0) -> Fit:
    prefill, decode = (1e-3, 1e-5, 1e-9, 5e-3), (2e-3, 1e-4, 1e-7, 5e-5)
    return fit(measured(prefill, decode, (1e-5, 1e-10), noise), "nano-cpu", "measured")


def test_a_short_pass_takes_the_floor() -> None:
    """Passes of up to 500 tokens take 6 ms whatever their length; only longer ones are a line."""
    one = example().hardware
    assert one.prefill_base_s + one.prefill_floor_s == pytest.approx(6e-3, rel=1e-6)
    assert one.prefill_token_s == pytest.approx(1e-5, rel=1e-3)
    assert example().residuals[0].worst < 1e-3


def test_no_time_is_negative_where_points_fall() -> None:
    falling = measured((1e-3, 0.0, 0.0, 0.0), (1e-3, 0.0, 0.0, 0.0), (1e-3, 0.0))
    changed = falling.model_copy(
        update={
            "copy_": (
                CopyPoint(bytes=1, seconds=(2.0,)),
                CopyPoint(bytes=10, seconds=(1.0,)),
                CopyPoint(bytes=100, seconds=(0.5,)),
            )
        }
    )
    one = fit(changed, "x", "s").hardware
    assert one.copy_byte_s == 0
    assert one.copy_base_s > 0


def test_points_that_determine_nothing_are_refused() -> None:
    same = PrefillPoint(tokens=64, context=0, seconds=(1.0,))
    stuck = measured((1e-3, 0, 0, 0), (1e-3, 0, 0, 0), (1e-3, 0)).model_copy(
        update={"prefill": (same, same, same)}
    )
    with pytest.raises(ValueError, match="prefill"):
        fit(stuck, "x", "s")


def written(folder: Path) -> Path:
    """A profile file as the command writes it."""
    path = folder / "mine.yaml"
    lines = yaml_lines(Shipped("a measured chip", example().hardware))
    path.write_text("profiles:\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_written_profile_is_read_back(tmp_path: Path) -> None:
    wanted = example().hardware
    found = read_hardware_file(written(tmp_path))
    assert found.name == "nano-cpu"
    assert found.decode_sequence_s == pytest.approx(wanted.decode_sequence_s, rel=1e-4)
    assert found.prefill_attention_s == pytest.approx(wanted.prefill_attention_s, rel=1e-4)
    assert found.copy_byte_s == pytest.approx(wanted.copy_byte_s, rel=1e-4)
    assert (found.extend_width, found.kv_memory_bytes) == (0, 0)


def test_a_scenario_takes_a_profile_by_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)
    scenario = load_scenario("hello", (f"shape.hardware={path}",))
    assert scenario.hardware.name == "nano-cpu"
    assert str(path) in {one.path for one in scenario.inputs}
    again = tmp_path / "run" / "scenario.yaml"
    again.parent.mkdir()
    again.write_text(scenario.resolved_yaml(), encoding="utf-8")
    monkeypatch.chdir("/")
    assert load_scenario(str(again)).hardware == scenario.hardware


def test_a_file_that_is_absent_or_holds_two_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"none\.yaml"):
        load_scenario("hello", (f"shape.hardware={tmp_path}/none.yaml",))
    path = written(tmp_path)
    text = path.read_text("utf-8")
    path.write_text(text + text.partition("\n")[2].replace("nano-cpu:", "other:"), "utf-8")
    with pytest.raises(ScenarioError, match="2 profiles"):
        load_scenario("hello", (f"shape.hardware={path}",))
