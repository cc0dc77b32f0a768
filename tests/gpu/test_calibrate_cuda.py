"""A model measured on a GPU: the profile can be used, and the tokens are those of a CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from testbed.contract.agent import ModelConfig
from testbed.errors import HostError
from testbed.run.calibrate_model import calibrate_model
from testbed.scenario import load_scenario
from testbed_agents.model.engine import Engine
from testbed_agents.model.load import load_model
from testbed_agents.model.measure import moved
from testbed_agents.model.prompt import prompt
from testbed_agents.model.protocol import Step

needs_gpu = pytest.mark.skipif(
    not torch.cuda.is_available(), reason=f"torch {torch.__version__} sees no CUDA device"
)


@needs_gpu
def test_a_profile_of_this_gpu_is_usable_in_a_scenario(tmp_path: Path) -> None:
    path = tmp_path / "gpu.yaml"
    done = calibrate_model("nano", "cuda", path, runs=3)
    assert {residual.what for residual in done.residuals} == {"prefill", "decode", "copy"}
    hardware = load_scenario("hello", (f"shape.hardware={path}",)).hardware
    assert torch.cuda.get_device_name() in hardware.source
    assert hardware.kv_memory_bytes > 0
    assert hardware.decode_base_s > 0


@needs_gpu
def test_tokens_on_a_gpu_are_those_of_a_cpu() -> None:
    model = load_model(ModelConfig(name="nano", sampling="greedy"))
    *tokens, last = prompt(5, 1, 0, 64)

    def answer(engine: Engine) -> list[int]:
        kv, chosen = engine.prefill(tokens), [last]
        for _ in range(16):
            chosen.append(engine.decode([Step(kv, (chosen[-1],), 1)])[0].token)
        return chosen

    expected = answer(model)
    torch.set_default_device("cuda")
    try:
        assert answer(Engine(moved(model.weights, torch.device("cuda")), 0, "greedy")) == expected
    finally:
        torch.set_default_device("cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_missing_gpu_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="sees no CUDA device"):
        calibrate_model("nano", "cuda", tmp_path / "gpu.yaml")
    assert not (tmp_path / "gpu.yaml").exists()
